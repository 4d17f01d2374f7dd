// Package stream is the protocol of one list and watch: the requests, the end of the initial state,
// the patience with silence, and the reasons why a stream ends. A reflector and a set of references
// share it; each chooses its own next request.
package stream

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Why a stream has ended, beside the errors of the server and its connection.
var (
	ErrSilent     = errors.New("nothing came within the liveness period")
	ErrDeadline   = errors.New("the server did not end the watch at its timeout")
	ErrIncomplete = errors.New("the watch list went on or ended without the bookmark that ends its initial events")
	ErrWentBack   = errors.New("the server's newest version is older than the one held: was its etcd restored from a backup?")
	ErrUnplaced   = errors.New("an event's resource version does not fit the versions before it: another backend, a replay, " +
		"or a version from the future")
)

const (
	// watchListPatience is how long a watch list may bring nothing before its bookmark. Servers
	// that know the request begin to answer within seconds; one that ignores it is silent from then
	// on.
	watchListPatience = 10 * time.Second
	// firstPatience is how many liveness periods a watch gets until its first event or bookmark.
	// API servers send no bookmark that is not newer than the version at which the watch began
	// (seen in 1.36.3), and look once a minute. A server that has just started, in a cluster
	// without writes, was seen to send its first bookmark after up to two minutes.
	firstPatience = 2
	// overtime is how long a server may take to end a watch itself, after the timeout of the
	// request.
	overtime = 30 * time.Second
)

// ProbePage is how many objects a probe compares at once, at least. No list of a state has such a
// page, so that the recorders of tests know a probe by it.
const ProbePage = 300

// UntilState is how long a watch list may be silent before its state has come.
func UntilState(liveness time.Duration) time.Duration { return min(watchListPatience, liveness) }

// UntilFirst is how long a watch may be silent before its first event or bookmark.
func UntilFirst(liveness time.Duration) time.Duration { return firstPatience * liveness }

// Watch asks for the events after a version.
func Watch(version string) metav1.ListOptions {
	return metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}
}

// WatchList asks for the state at least as new as atLeast, or as the moment of the request, and for
// the events after it (KEP-3157).
func WatchList(atLeast string) metav1.ListOptions {
	yes := true
	return metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersion: atLeast, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
}

// Ending asks the server to end a watch between a time and its double, so that many watches spread.
// random is in [0, 1).
func Ending(request metav1.ListOptions, after time.Duration, random float64) (metav1.ListOptions, time.Duration) {
	after = (after + time.Duration(random*float64(after))).Truncate(time.Second)
	seconds := int64(after / time.Second)
	request.TimeoutSeconds = &seconds
	return request, after
}

// Part is the part of an event in the initial state.
type Part uint8

const (
	// Object is one of the state.
	Object Part = iota
	// Progress says that the server lives.
	Progress
	// End is the bookmark that names the version of the state.
	End
)

// PartOf names the part of an event before the end of the initial state. Until then a server sends
// additions and bookmarks; another event means that it does not know this kind of request.
func PartOf[T store.Object](event listwatch.Event[T]) (Part, error) {
	switch {
	case event.Type == watch.Bookmark && event.InitialEventsEnd:
		return End, nil
	case event.Type == watch.Bookmark:
		return Progress, nil
	case event.Type == watch.Added:
		return Object, nil
	}
	return Progress, ErrIncomplete
}

// Cause puts the reason why ctx was ended in place of the error that its end caused. An object that
// could not be decoded stays what it is.
func Cause(ctx context.Context, err error) error {
	if err == nil { // before anything is allocated
		return nil
	}
	cause := context.Cause(ctx)
	if cause == ctx.Err() || errors.As(err, new(*listwatch.DecodeError)) {
		return err
	}
	return cause
}

// Rest keeps a client from watch lists after one that failed when a LIST worked. It grows while
// they fail.
type Rest struct {
	until  time.Time
	length time.Duration
}

const (
	leastRest = time.Minute
	mostRest  = time.Hour
)

// Over reports whether a watch list may be asked for.
func (r *Rest) Over(now time.Time) bool { return !now.Before(r.until) }

// Begin takes in a LIST that worked where a watch list did not.
func (r *Rest) Begin(now time.Time) {
	r.length = min(max(2*r.length, leastRest), mostRest)
	r.until = now.Add(r.length)
}

// End takes in a watch list that worked.
func (r *Rest) End() { r.length = 0 }

// Never rests for good: watch lists are turned off.
func (r *Rest) Never() { r.until = time.Now().Add(1<<63 - 1) }

// Sink takes in the events of a stream, in order. An error ends the stream.
type Sink[T store.Object] interface {
	// Item is an object of the state. The event of a LIST has no size.
	Item(event listwatch.Event[T]) error
	// State ends the state, and names its version.
	State(version string) error
	// Change is a change after the state, or a bookmark.
	Change(event listwatch.Event[T]) error
}

// WatchListTo reads the state and the changes by one request, until the watch ends.
func WatchListTo[T store.Object](ctx context.Context, source listwatch.ListerWatcher[T], request metav1.ListOptions, to Sink[T]) error {
	return watchTo(ctx, source, request, to, true)
}

// watchTo reads a watch, which begins with the state if it is initial.
func watchTo[T store.Object](ctx context.Context, source listwatch.ListerWatcher[T], request metav1.ListOptions, to Sink[T], initial bool) error {
	for event, err := range source.Watch(ctx, request) {
		part := Progress
		switch {
		case err != nil:
			return err
		case !initial:
			err = to.Change(event)
		default:
			part, err = PartOf(event)
		}
		switch {
		case err != nil:
		case part == Object:
			err = to.Item(event)
		case part == End:
			initial = false
			err = to.State(event.ResourceVersion)
		}
		if err != nil {
			return err
		}
	}
	if initial {
		return ErrIncomplete
	}
	return nil
}

// ListAndWatchTo is WatchListTo for servers without watch lists: list selects the LIST, and watch
// makes the request that follows the version of its state.
func ListAndWatchTo[T store.Object](ctx context.Context, source listwatch.ListerWatcher[T], list metav1.ListOptions,
	watch func(version string) metav1.ListOptions, to Sink[T],
) error {
	all := source.List(ctx, list)
	for obj, err := range all.Items {
		if err == nil {
			err = to.Item(listwatch.Event[T]{Object: obj})
		}
		if err != nil {
			return err
		}
	}
	version := all.Meta().ResourceVersion
	if err := to.State(version); err != nil {
		return err
	}
	return watchTo(ctx, source, watch(version), to, false)
}

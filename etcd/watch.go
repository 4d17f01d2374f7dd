package etcd

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strconv"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// errTimeout ends a watch in its own time.
var errTimeout = errors.New("the watch has reached its timeout")

// watch answers a WATCH.
func (s *Source[T]) watch(ctx context.Context, options metav1.ListOptions, held func(key string) (T, bool), yield func(listwatch.Event[T], error) bool) error {
	options.Watch = true
	r, err := s.request(options)
	if err != nil {
		return err
	}
	if r.TimeoutSeconds != nil && *r.TimeoutSeconds > 0 {
		// No deadline: gRPC would tell it to etcd, which may answer it with an error of its own.
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		defer end(nil)
		defer time.AfterFunc(time.Duration(*r.TimeoutSeconds)*time.Second, func() { end(errTimeout) }).Stop()
	}
	w := watching[T]{source: s, request: &r, held: held, yield: yield, start: r.version}
	wantsState := r.version == 0
	if r.SendInitialEvents != nil {
		wantsState = *r.SendInitialEvents
	}
	if wantsState {
		err = w.state(ctx)
	}
	if err == nil {
		err = w.follow(ctx)
	}
	switch {
	case errors.Is(context.Cause(ctx), errTimeout) && !errors.Is(err, errStopped):
		return nil
	case is(err, rpctypes.ErrCompacted):
		return compacted(w.position)
	case errors.Is(err, io.EOF): // a member that stops may say no more
		return nil
	}
	return StatusOf(ctx, err)
}

// watching is one watch on its way to the reader.
type watching[T store.Object] struct {
	source  *Source[T]
	request *request[T]
	held    func(key string) (T, bool) // the reader's copy; nil if it is unknown
	yield   func(listwatch.Event[T], error) bool

	start int64 // the reader has all changes up to there
	// position is the newest revision of which the reader has been told everything (invariant 2).
	position int64
}

// state sends the objects that there are as additions, with a bookmark behind them if the reader
// wants initial events (KEP-3157).
func (w *watching[T]) state(ctx context.Context) error {
	s := w.source
	whole := span{start: s.prefix, end: clientv3.GetPrefixRangeEnd(s.prefix), serializable: w.request.ResourceVersion == "0"}
	s.decoder.begin()
	read := reading[T]{source: s, request: w.request, yield: func(obj T, err error) bool {
		if err != nil {
			return w.yield(listwatch.Event[T]{}, asEvent(err, watch.Added))
		}
		return w.yield(listwatch.Event[T]{Type: watch.Added, Object: obj, ResourceVersion: obj.GetResourceVersion()}, nil)
	}}
	if err := read.all(ctx, whole); err != nil {
		return err
	}
	if read.revision < w.request.version {
		return tooLarge(w.request.version, read.revision)
	}
	w.start = read.revision
	if w.request.SendInitialEvents == nil || !w.request.AllowWatchBookmarks {
		return nil
	}
	return w.bookmark(read.revision, true)
}

// asEvent says of an object of the state that could not be decoded that it came in a watch.
func asEvent(err error, kind watch.EventType) error {
	var unusable *listwatch.DecodeError
	if errors.As(err, &unusable) {
		return &listwatch.DecodeError{Op: "watch", Event: string(kind), Object: unusable.Object, Err: unusable.Err}
	}
	return err
}

// follow passes on the changes after start.
//
// The watch begins at start itself, and the changes of start are dropped: the package's
// documentation says why.
func (w *watching[T]) follow(ctx context.Context) error {
	w.position = w.start
	st, err := w.source.openStream(ctx, w.start, w.request.AllowWatchBookmarks)
	if err != nil {
		return err
	}
	defer st.close()
	if !w.source.sameCluster(st.first.GetClusterId()) {
		return errOtherCluster
	}
	// The member is behind, or the version is from another history.
	if st.first.GetRevision() < w.start {
		answer, err := w.source.client.Get(ctx, w.source.prefix)
		if err != nil {
			return err
		}
		if answer.Header.Revision < w.start {
			return tooLarge(w.start, answer.Header.Revision)
		}
	}
	arrived := make(chan arrival[T]) // one is told while the next one is received and decoded
	stopped := make(chan struct{})
	var receiving sync.WaitGroup
	defer receiving.Wait()
	defer st.cancel()
	defer close(stopped)
	receiving.Go(func() { w.receive(st, arrived, stopped) })
	for {
		a := <-arrived
		switch {
		case a.err != nil:
			return a.err
		case len(a.events) > 0:
			err = w.pass(a)
		case a.revision > 0 && a.revision >= w.position && w.request.AllowWatchBookmarks:
			w.position = a.revision
			err = w.bookmark(a.revision, false)
		}
		if err != nil {
			return err
		}
	}
}

// arrival is a response with its decoded events.
type arrival[T store.Object] struct {
	response
	told []told[T] // of each event
	err  error
}

// receive hands responses on, until an error or until the reader has stopped.
func (w *watching[T]) receive(st *stream, arrived chan<- arrival[T], stopped <-chan struct{}) {
	for {
		var a arrival[T]
		a.response, a.err = st.next()
		for len(a.events) > 0 && a.events[0].Kv.ModRevision <= w.start {
			a.events = a.events[1:]
		}
		a.told = make([]told[T], len(a.events))
		together(len(a.events), func(i int) { a.told[i] = w.tell(a.events[i]) })
		select {
		case arrived <- a:
		case <-stopped:
			return
		}
		if a.err != nil {
			return
		}
	}
}

func (w *watching[T]) bookmark(revision int64, initialEventsEnd bool) error {
	event := listwatch.Event[T]{Type: watch.Bookmark, ResourceVersion: strconv.FormatInt(revision, 10), InitialEventsEnd: initialEventsEnd}
	if !w.yield(event, nil) {
		return errStopped
	}
	return nil
}

// told is one event of etcd as the watch tells it.
type told[T store.Object] struct {
	event listwatch.Event[T]
	err   error
	none  bool // it does not concern a selected object
}

// pass passes on the events of one answer, which are whole revisions.
func (w *watching[T]) pass(a arrival[T]) error {
	for i, e := range a.events {
		revision := e.Kv.ModRevision
		if revision <= w.position {
			return errOvertaken
		}
		if i+1 == len(a.events) || a.events[i+1].Kv.ModRevision != revision {
			w.position = revision
		}
		t := a.told[i]
		if t.none {
			continue
		}
		t.event.ResourceVersion, t.event.Bytes = strconv.FormatInt(w.position, 10), len(e.Kv.Value)
		if e.PrevKv != nil && e.Type == mvccpb.Event_DELETE {
			t.event.Bytes = len(e.PrevKv.Value)
		}
		if t.err != nil {
			t.event = listwatch.Event[T]{}
		}
		if !w.yield(t.event, t.err) {
			return errStopped
		}
	}
	return nil
}

// tell decodes one event.
func (w *watching[T]) tell(e *mvccpb.Event) told[T] {
	d, key, revision := w.source.decoder, w.source.key(e.Kv.Key), e.Kv.ModRevision
	if e.Type == mvccpb.Event_DELETE {
		last, err := w.before(key, e)
		if err != nil {
			return deleted(d.standIn(key, revision))
		}
		if !w.request.matches(last) {
			return told[T]{none: true}
		}
		return deleted(last)
	}
	kind, last := watch.Added, sharing.Last{}
	if e.Kv.CreateRevision != revision {
		kind, last.Changes = watch.Modified, true
		if w.held != nil {
			last.Object, _ = w.held(key)
		}
	}
	obj, err := d.object(key, e.Kv.Value, revision, last)
	if err != nil {
		err = &listwatch.DecodeError{Op: "watch", Event: string(kind), Object: key, Err: err}
		if locked := lockedBy(err); locked != nil {
			w.source.locked.Store(locked)
		}
		return told[T]{err: err}
	}
	if !w.request.selective() {
		return told[T]{event: listwatch.Event[T]{Type: kind, Object: obj}}
	}
	return w.selected(key, e, kind, obj)
}

// selected tells the change of an object as a reader with selectors sees it: one that stops to
// match is deleted, one that starts to match is added.
func (w *watching[T]) selected(key string, e *mvccpb.Event, kind watch.EventType, obj T) told[T] {
	matches := w.request.matches(obj)
	if kind == watch.Added {
		return told[T]{event: listwatch.Event[T]{Type: watch.Added, Object: obj}, none: !matches}
	}
	last, err := w.before(key, e)
	switch {
	case err != nil && matches: // whether it matched before is not known: the reader's copy knows
		return told[T]{event: listwatch.Event[T]{Type: watch.Modified, Object: obj}}
	case err != nil:
		return deleted(w.source.decoder.standIn(key, e.Kv.ModRevision))
	case matches && w.request.matches(last):
		return told[T]{event: listwatch.Event[T]{Type: watch.Modified, Object: obj}}
	case matches:
		return told[T]{event: listwatch.Event[T]{Type: watch.Added, Object: obj}}
	case w.request.matches(last):
		return deleted(last)
	}
	return told[T]{none: true}
}

var errNoLastState = errors.New("etcd has no last state of the object")

// before is the state of the object before a change, under the version of the change.
func (w *watching[T]) before(key string, e *mvccpb.Event) (last T, err error) {
	if e.PrevKv == nil {
		return last, errNoLastState
	}
	return w.source.decoder.object(key, e.PrevKv.Value, e.Kv.ModRevision, sharing.Last{})
}

func deleted[T store.Object](last T) told[T] {
	return told[T]{event: listwatch.Event[T]{Type: watch.Deleted, Object: last}}
}

const (
	maxDecode = 4 // goroutines that decode one answer
	worthIt   = 8 // events of each of them, at least
)

// together calls do for each number below n, by several goroutines if there is enough to do. All
// have ended when it returns.
func together(n int, do func(int)) {
	workers := max(1, min(n/worthIt, runtime.GOMAXPROCS(0), maxDecode))
	var others sync.WaitGroup
	part := func(worker int) {
		for i := n * worker / workers; i < n*(worker+1)/workers; i++ {
			do(i)
		}
	}
	for worker := 1; worker < workers; worker++ {
		others.Go(func() { part(worker) })
	}
	part(0)
	others.Wait()
}

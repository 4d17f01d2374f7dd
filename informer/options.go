package informer

import (
	"errors"
	"fmt"
	"time"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// Option changes how an informer works.
type Option func(*options)

type options struct {
	missing   error // options that are nil
	indexes   []any // each is a []store.AnyIndex[T]; T is an informer's object type
	stores    []any // each is a storeMaker[T]
	reflector []reflector.Option
	ring      int
	verify    time.Duration
	report    func(Drift, error)
	ofSet     bool   // indexes of other types belong to other informers
	namespace string // the collection's only namespace; empty if there may be several
}

// defaults, with their reasons. A test changes them.
var defaults = func() options {
	return options{
		// Enough for the bursts of a rollout, at 112 bytes and one old object per event. A handler
		// that falls further behind does not need every step.
		ring: 1024,
	}
}

// WithIndexes keeps indexes, for queries on the informer's snapshots. Run fails if an index is not
// of the informer's own object type.
func WithIndexes[T store.Object](indexes ...store.AnyIndex[T]) Option {
	return func(o *options) { o.indexes = append(o.indexes, indexes) }
}

// WithReflector passes options on to the reflector: logger, metrics, backoff, liveness.
func WithReflector(list ...reflector.Option) Option {
	return func(o *options) { o.reflector = append(o.reflector, list...) }
}

// WithRing sets how many changes the ring holds for busy handlers. Default 1024, at least 1. A
// change takes 112 bytes, and keeps the object's previous version alive, until all handlers have
// read it. The ring has no room for changes before they come.
//
// Raise it for handlers that must see every step of a long burst. A handler that falls further
// behind gets the difference, so no event is lost either way.
func WithRing(events int) Option { return func(o *options) { o.ring = events } }

// WithVerification verifies the copy against the server repeatedly; every is the pause after each
// verification. Each costs the server a LIST: see [Informer.Verify]. Default: never. No copy needs
// it: it proves that nothing is missing. A copy that differs is not right, and relists by itself.
//
// report gets each result, on a goroutine of Run, which waits for it. A panic of report ends Run
// with a *[PanicError]. report may be nil: [Informer.Status] has the last result and error too.
func WithVerification(every time.Duration, report func(Drift, error)) Option {
	return func(o *options) { o.verify, o.report = every, report }
}

func apply(list []Option) options {
	o := defaults()
	o.missing = null.Options("informer", list, func(option Option) { option(&o) })
	return o
}

func (o options) validate() error {
	all := []error{o.missing}
	if o.ring < 1 {
		all = append(all, fmt.Errorf("informer: WithRing(%d): give at least 1", o.ring))
	}
	if o.verify < 0 {
		all = append(all, fmt.Errorf("informer: WithVerification(%s): give a positive duration", o.verify))
	}
	if err := reflector.Validate(o.reflector...); err != nil {
		all = append(all, fmt.Errorf("informer: WithReflector: %w", err))
	}
	return errors.Join(all...)
}

// indexesOf returns the indexes of one object type.
func indexesOf[T store.Object](o options) ([]store.AnyIndex[T], error) {
	var all []store.AnyIndex[T]
	for _, given := range o.indexes {
		indexes, ok := given.([]store.AnyIndex[T])
		if !ok && o.ofSet {
			continue
		}
		if !ok {
			var want T
			return nil, fmt.Errorf("informer: WithIndexes: the indexes are of another type than the informer's %T", want)
		}
		for i, index := range indexes {
			if null.Is(index) {
				return nil, fmt.Errorf("informer: WithIndexes: index %d is nil: make it with store.NewIndex", i+1)
			}
		}
		all = append(all, indexes...)
	}
	return all, nil
}

// HandlerOption changes how events are delivered to one handler.
type HandlerOption func(*handlerOptions)

type handlerOptions struct {
	missing    error // options that are nil
	name       string
	redelivery time.Duration
	synced     func()
	isolated   bool
	owner      any // the lease that the handler ends with; nil without one
}

// WithName names the handler in errors, [Status] and metrics. Default: "handler-" and a number.
// Names need not be unique, but metrics are more useful if they are.
func WithName(name string) HandlerOption { return func(o *handlerOptions) { o.name = name } }

// WithRedelivery repeatedly tells the handler all objects again, as [Redelivered] events; every is
// the pause after each repetition. Default: never. Other libraries call this a resync.
//
// It asks the server nothing, finds nothing that the store does not hold, and mends no copy. It is
// for handlers that compare with something outside the cluster, or that have dropped an event
// themselves.
func WithRedelivery(every time.Duration) HandlerOption {
	return func(o *handlerOptions) { o.redelivery = every }
}

// WithSynced calls synced once, between the last event of the initial list and the first change,
// even if the list is empty. No event comes before synced has returned.
//
// It runs on the handler's goroutine; for [Informer.Events], on the loop's own, so the two may
// share variables. To wait on another goroutine, use [Handler.Synced].
func WithSynced(synced func()) HandlerOption { return func(o *handlerOptions) { o.synced = synced } }

// WithIsolation lets the informer go on if this handler panics: only the handler ends, and its
// [HandlerStatus] has the error. Default: Run ends with the error. It has no effect on
// [Informer.Events]: such a loop panics on the caller's goroutine.
func WithIsolation() HandlerOption { return func(o *handlerOptions) { o.isolated = true } }

package informer

import (
	"fmt"
	"time"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// Option changes how an informer works.
type Option func(*options)

type options struct {
	indexes   []any // of []store.AnyIndex[T], for the T of the informer
	reflector []reflector.Option
	ring      int
	metrics   Metrics
	verify    time.Duration
	report    func(Drift, error)
	ofSet     bool   // indexes of other types are for other informers
	namespace string // the only one of the collection, where that is known
}

// defaults, with their reasons.
func defaults() options {
	return options{
		// Enough for the bursts of a rollout, at 48 bytes and one old version of an object per event. A handler that
		// falls further behind has no use for every step.
		ring: 1024,
	}
}

// WithIndexes keeps indexes, for queries on the informer's snapshots. They must be of the informer's own object type;
// Run fails otherwise.
func WithIndexes[T store.Object](indexes ...store.AnyIndex[T]) Option {
	return func(o *options) { o.indexes = append(o.indexes, indexes) }
}

// WithReflector passes options on to the reflector: logger, metrics, backoff, liveness.
func WithReflector(list ...reflector.Option) Option {
	return func(o *options) { o.reflector = append(o.reflector, list...) }
}

// WithRing sets how many changes are remembered for handlers that are busy. Default 1024, at least 1. An event takes 48
// bytes, and keeps alive the object's version before it. Raise it for handlers that must see every step of a long
// burst; one that falls behind further gets the difference, so that no event is lost either way.
func WithRing(events int) Option { return func(o *options) { o.ring = events } }

// WithMetrics reports to m. Default: nowhere.
func WithMetrics(m Metrics) Option { return func(o *options) { o.metrics = m } }

// WithVerification verifies the copy against the server every so often, counted from the end of the last one, and calls
// report with each result, on a goroutine of Run that waits for it; its panic ends Run with a *[PanicError]. report may be
// nil: [Informer.Status] has the last result and error too. Each costs the server a LIST; see [Informer.Verify]. Default:
// never. A reflector needs no such help; this is for those who want to prove it.
func WithVerification(every time.Duration, report func(Drift, error)) Option {
	return func(o *options) { o.verify, o.report = every, report }
}

func apply(list []Option) options {
	o := defaults()
	for _, option := range list {
		option(&o)
	}
	return o
}

func (o options) validate() error {
	switch {
	case o.ring < 1:
		return fmt.Errorf("informer: WithRing(%d): give at least 1", o.ring)
	case o.verify < 0:
		return fmt.Errorf("informer: WithVerification(%s): give a positive duration", o.verify)
	}
	return nil
}

// indexesOf are the indexes of one object type.
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
	name       string
	redelivery time.Duration
	synced     func()
	isolated   bool
	owner      any // what the handler ends with, besides the informer
}

// WithName names the handler in errors, [Status] and metrics. Default: "handler-" and a number. Names need not be
// unique, but metrics are more useful when they are.
func WithName(name string) HandlerOption { return func(o *handlerOptions) { o.name = name } }

// WithRedelivery tells the handler all objects again every so often, as [Redelivered] events, counted from the end of
// the last time. Default: never. Others call this a resync. It asks the server nothing, finds nothing that the store
// does not hold, and mends no copy: it is for handlers that compare with something outside of the cluster, or that
// dropped an event of their own accord.
func WithRedelivery(every time.Duration) HandlerOption {
	return func(o *handlerOptions) { o.redelivery = every }
}

// WithSynced calls synced between the last event of the initial list and the first change, once, also where the list is
// empty. It runs where the handler does, for a loop over [Informer.Events] on the loop's own goroutine: what it writes
// the loop may read, and no event comes before it has returned. A handler that waits elsewhere has [Handler.Synced].
func WithSynced(synced func()) HandlerOption { return func(o *handlerOptions) { o.synced = synced } }

// WithIsolation lets the informer go on when this handler panics: the handler ends, and its [HandlerStatus] has the
// error. Default: Run ends with the error. It has no effect on [Informer.Events], whose loop panics where it stands.
func WithIsolation() HandlerOption { return func(o *handlerOptions) { o.isolated = true } }

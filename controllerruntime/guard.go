package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/listwatch"
)

// WarnAbove logs a line if a Get or List has started a collection of more objects than that: once
// it is synced, or within a minute after it has grown so far. Default: no such line. Kinds that an
// informer or an index has started are not counted.
func WarnAbove(objects int) Option { return func(e *extras) { e.warnAbove = objects } }

// RefuseAbove makes a Get or List fail with [ErrTooMany] if it would start a collection of more
// objects than that. Default: none fails. ReaderFailOnMissingInformer in cache.Options refuses all
// reads that would start a collection.
//
// The server is asked for the number before anything is kept, by a LIST of one object. If it does
// not tell, as with selectors, or in several namespaces, objects are counted while they come, and
// the list is left at the first one too many. The next minute, reads of the kind fail at once.
//
// It permits all that the program asks for by name: the collections of GetInformer, which Watches,
// Owns and For call, and of IndexField. If a read has started a collection, it is permitted when
// one of them asks for it. A collection that has grown beyond the number since its first list is
// kept.
func RefuseAbove(objects int) Option { return func(e *extras) { e.refuseAbove = objects } }

// ErrTooMany is the cause if [RefuseAbove] refuses a read.
var ErrTooMany = errors.New("the read would keep too many objects")

// refusedFor is how long a kind is refused without another question.
const refusedFor = time.Minute

// refusal is the error for reads of a kind, for a while.
type refusal struct {
	err   error
	until time.Time
}

// tooMany is the error of a read that would keep so many objects.
func (c *Cache) tooMany(k kind, count string) error {
	return fmt.Errorf("controllerruntime: %s: %w: there are %s, and RefuseAbove permits %d: select fewer with ByObject, "+
		"read the kind by name with Lean or from the server with mgr.GetAPIReader(), or ask for all with GetInformer",
		k, ErrTooMany, count, c.settings.refuseAbove)
}

// mayBegin returns an error if a read must not begin the collection of a kind.
func (c *Cache) mayBegin(ctx context.Context, k kind, example runtime.Object) error {
	if c.settings.refuseAbove <= 0 || c.options.ReaderFailOnMissingInformer {
		return nil
	}
	c.mu.Lock()
	_, exists := c.collections[k]
	started, refused := c.start != nil, c.refused[k]
	c.mu.Unlock()
	switch {
	case exists:
		return nil
	case !started:
		return &cache.ErrCacheNotStarted{}
	case time.Now().Before(refused.until):
		return refused.err
	}
	if count := c.count(ctx, k, example); count > int64(c.settings.refuseAbove) {
		err := c.tooMany(k, fmt.Sprint(count, " objects"))
		c.mu.Lock()
		defer c.mu.Unlock()
		c.refused[k] = refusal{err, time.Now().Add(refusedFor)}
		return err
	}
	return nil
}

// count asks the server for the number of objects of a kind; zero if it does not tell. A failure is
// left to the collection, which says more of it.
func (c *Cache) count(ctx context.Context, k kind, example runtime.Object) int64 {
	shape, empty, mapping, err := newShape(k, example, c.settings, c.sources)
	if err != nil || len(shape.configs) != 1 {
		return 0
	}
	quiet := c.sources // a program's handlers and transforms are for the collection's own requests
	quiet.onError = nil
	for namespace, config := range shape.configs {
		config.Transform = nil
		source, err := quiet.of(k, empty, mapping, namespace, config)
		if err != nil {
			return 0
		}
		list := source.List(ctx, metav1.ListOptions{Limit: 1})
		count := int64(0)
		for _, err := range list.Items {
			if err != nil {
				return 0
			}
			count++
		}
		if left := list.Meta().RemainingItemCount; left != nil {
			return count + *left
		}
	}
	return 0
}

// limit bounds the objects of a collection that a read has begun, until its first state is whole.
type limit struct {
	most int
	// refuse ends the collection, unless the limit is lifted meanwhile, and returns the reads'
	// error.
	refuse func() error

	mu     sync.Mutex
	lifted bool
	parts  map[string]int // objects of the list under way, by the name of the part
}

func newLimit(most int) *limit { return &limit{most: most, parts: map[string]int{}} }

// lift ends a limit. A nil pointer is none.
func (l *limit) lift() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lifted = true
}

func (l *limit) isLifted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lifted
}

// begin begins the list of a part.
func (l *limit) begin(part string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts[part] = 0
}

// count counts an object of a part. It returns an error if that is one too many.
func (l *limit) count(part string) error {
	l.mu.Lock()
	l.parts[part]++
	sum := 0
	for _, count := range l.parts {
		sum += count
	}
	over := sum > l.most && !l.lifted
	l.mu.Unlock()
	if !over {
		return nil
	}
	return l.refuse()
}

// counted returns a source whose first state is counted.
func (l *limit) counted(source listwatch.ListerWatcher[object], part string) listwatch.ListerWatcher[object] {
	if l == nil {
		return source
	}
	return listwatch.Intercept(source, func(request metav1.ListOptions, list listwatch.List[object]) listwatch.List[object] {
		if request.Limit == 1 || l.isLifted() {
			return list
		}
		if request.Continue == "" {
			l.begin(part)
		}
		list.Items = upTo(list.Items, func(object) error { return l.count(part) })
		return list
	}, func(request metav1.ListOptions, events iter.Seq2[listwatch.Event[object], error]) iter.Seq2[listwatch.Event[object], error] {
		if !watchlist.Asked(request) || l.isLifted() {
			return events
		}
		l.begin(part)
		return upTo(events, func(event listwatch.Event[object]) error {
			if event.Type != watch.Added {
				return nil
			}
			return l.count(part)
		})
	})
}

// upTo passes a sequence on until take returns an error, which ends it.
func upTo[V any](all iter.Seq2[V, error], take func(V) error) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for v, err := range all {
			if err == nil {
				if refused := take(v); refused != nil {
					var none V
					yield(none, refused)
					return
				}
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// refuse ends a collection that has too many objects. It returns nil if an informer or an index has
// asked for it meanwhile.
func (c *Cache) refuse(k kind, held *collection) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held.limit.isLifted() {
		return nil
	}
	held.refused = c.tooMany(k, fmt.Sprintf("more than %d", held.limit.most))
	held.stop()
	if c.collections[k] == held {
		delete(c.collections, k)
		c.refused[k] = refusal{held.refused, time.Now().Add(refusedFor)}
	}
	return held.refused
}

// whyEnded is the error of a read whose collection has ended before it was synced.
func (c *Cache) whyEnded(held *collection) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return held.refused
}

// tell logs the beginning of a collection that a read has begun, and its size.
func (c *collection) tell(ctx context.Context) {
	log := logger().WithValues("kind", c.kind.String())
	began := time.Now()
	log.Info("A read starts a collection, which keeps all objects in the scope", "scope", c.scope(), "read", string(c.by), "caller", c.caller)
	select {
	case <-c.copy.Synced():
	case <-ctx.Done():
		return
	}
	c.limit.lift()
	cost := c.bill()
	log.Info("A collection that a read has started is synced", "objects", cost.Objects, "receivedBytes", cost.ReceivedBytes,
		"took", time.Since(began).Round(time.Millisecond).String())
	if c.warnAbove > 0 {
		c.warn(ctx)
	}
}

// warn logs a line once the collection is large.
func (c *collection) warn(ctx context.Context) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		if now := c.bill(); now.Objects > c.warnAbove {
			logger().Info("A collection that a read has started is large: select fewer objects with ByObject, or read the kind by name with Lean",
				"kind", now.Name, "objects", now.Objects, "warnAbove", c.warnAbove, "receivedBytes", now.ReceivedBytes, "caller", now.Caller)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// callerOf is the function that has called into this package through controller-runtime, if any.
func callerOf() string {
	var stack [64]uintptr
	frames := goruntime.CallersFrames(stack[:goruntime.Callers(2, stack[:])])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, ownFunctions) && !strings.HasPrefix(frame.Function, "sigs.k8s.io/controller-runtime/") {
			return fmt.Sprintf("%s (%s:%d)", frame.Function, filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return ""
		}
	}
}

const ownFunctions = "github.com/tributary-go/tributary/controllerruntime."

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// The untyped file: only [typed] turns an any into a T.

// Indexer adapts snapshots to a cache.Indexer, which is also a cache.Store: the input of generated
// listers. It has the index cache.NamespaceIndex, and AddIndexers adds others at any time.
//
// If from is also a [store.Store], the indexer writes into it; otherwise, and for an informer,
// writing is an error. Returned objects are shared and read-only. It is safe for concurrent use. It
// panics if from is nil.
func Indexer[T store.Object](from store.Snapshotter[T]) cache.Indexer {
	if null.Is(from) {
		panic("clientgo: Indexer: the source is nil")
	}
	return newIndexer(from)
}

func newIndexer[T store.Object](from store.Snapshotter[T]) *indexer[T] {
	x := &indexer[T]{from: from, indexes: map[string]*index[T]{}}
	x.to, _ = from.(store.Store[T])
	x.indexes[cache.NamespaceIndex] = &index[T]{values: cache.MetaNamespaceIndexFunc}
	return x
}

type indexer[T store.Object] struct {
	from store.Snapshotter[T]
	to   store.Store[T] // nil: read-only

	mu      sync.RWMutex // guards indexes, not their content
	indexes map[string]*index[T]
}

func (x *indexer[T]) Add(obj any) error    { return x.write("add", obj, store.Store[T].Add) }
func (x *indexer[T]) Update(obj any) error { return x.write("update", obj, store.Store[T].Update) }
func (x *indexer[T]) Delete(obj any) error { return x.write("delete", obj, store.Store[T].Delete) }

func (x *indexer[T]) write(op string, obj any, write func(store.Store[T], T) error) error {
	if x.to == nil {
		return fmt.Errorf("clientgo: %s: %w", op, errReadOnly)
	}
	object, err := typed[T](obj)
	if err != nil {
		return fmt.Errorf("clientgo: %s: %w", op, err)
	}
	return write(x.to, object)
}

func (x *indexer[T]) Replace(list []any, resourceVersion string) error {
	if x.to == nil {
		return fmt.Errorf("clientgo: replace: %w", errReadOnly)
	}
	items := func(yield func(T, error) bool) {
		for _, obj := range list {
			object, err := typed[T](obj)
			if err != nil {
				err = fmt.Errorf("clientgo: replace: %w", err)
			}
			if !yield(object, err) {
				return
			}
		}
	}
	return x.to.Replace(items, store.At(resourceVersion))
}

// Bookmark cannot return an error. It does nothing on a read-only indexer.
func (x *indexer[T]) Bookmark(resourceVersion string) {
	if b, ok := x.to.(store.Bookmarker); ok {
		_ = b.Bookmark(resourceVersion)
	}
}

func (x *indexer[T]) Resync() error { return nil } // client-go's indexers have no resync either

func (x *indexer[T]) List() []any {
	now := x.from.Snapshot()
	all := make([]any, 0, now.Len())
	for _, obj := range now.All() {
		all = append(all, obj)
	}
	return all
}

func (x *indexer[T]) ListKeys() []string {
	now := x.from.Snapshot()
	keys := make([]string, 0, now.Len())
	for key := range now.All() {
		keys = append(keys, key)
	}
	return keys
}

func (x *indexer[T]) LastStoreSyncResourceVersion() string {
	return x.from.Snapshot().ResourceVersion()
}

// Get accepts anything with a name: an object of any type, a cache.ExplicitKey, a tombstone.
func (x *indexer[T]) Get(obj any) (item any, exists bool, err error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, fmt.Errorf("clientgo: get: a %T has no key", obj)
	}
	return x.GetByKey(key)
}

func (x *indexer[T]) GetByKey(key string) (item any, exists bool, err error) {
	obj, ok := x.from.Snapshot().Get(key)
	if !ok {
		return nil, false, nil // a nil T in an any would not be nil
	}
	return obj, true, nil
}

func (x *indexer[T]) Index(name string, obj any) (found []any, err error) {
	err = x.query(name, func(i *index[T]) error {
		values, err := i.values(obj)
		if err != nil {
			return err
		}
		seen := map[string]bool{} // an object may have several of the values
		for _, value := range values {
			for key, obj := range i.found[value] {
				if !seen[key] {
					seen[key] = true
					found = append(found, obj)
				}
			}
		}
		return nil
	})
	return found, err
}

func (x *indexer[T]) ByIndex(name, value string) (found []any, err error) {
	err = x.query(name, func(i *index[T]) error {
		found = make([]any, 0, len(i.found[value]))
		for _, obj := range i.found[value] {
			found = append(found, obj)
		}
		return nil
	})
	return found, err
}

func (x *indexer[T]) IndexKeys(name, value string) (keys []string, err error) {
	err = x.query(name, func(i *index[T]) error {
		for key := range i.found[value] {
			keys = append(keys, key)
		}
		return nil
	})
	return keys, err
}

// ListIndexFuncValues cannot return an error: it has no values if the index is absent or fails.
func (x *indexer[T]) ListIndexFuncValues(name string) (values []string) {
	_ = x.query(name, func(i *index[T]) error {
		for value := range i.found {
			values = append(values, value)
		}
		return nil
	})
	return values
}

func (x *indexer[T]) GetIndexers() cache.Indexers {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := make(cache.Indexers, len(x.indexes))
	for name, i := range x.indexes {
		all[name] = i.values
	}
	return all
}

// AddIndexers adds all or, if a name is taken, none. The namespace index may be given again.
func (x *indexer[T]) AddIndexers(more cache.Indexers) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, values := range more {
		_, taken := x.indexes[name]
		switch {
		case values == nil:
			return fmt.Errorf("clientgo: add index %q: its function is nil", name)
		case taken && name != cache.NamespaceIndex:
			return fmt.Errorf("clientgo: add index %q: the name is taken", name)
		}
	}
	for name, values := range more {
		x.indexes[name] = &index[T]{values: values}
	}
	return nil
}

// query runs read on an index that agrees with the newest snapshot.
func (x *indexer[T]) query(name string, read func(*index[T]) error) error {
	x.mu.RLock()
	i, ok := x.indexes[name]
	x.mu.RUnlock()
	if !ok {
		return fmt.Errorf("clientgo: there is no index %q: add it with AddIndexers", name)
	}
	if err := i.query(x.from, read); err != nil {
		return fmt.Errorf("clientgo: index %q: %w", name, err)
	}
	return nil
}

// typed returns obj, or the object of a tombstone, as a T.
func typed[T store.Object](obj any) (T, error) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	object, ok := obj.(T)
	if !ok {
		return object, fmt.Errorf("got a %T instead of a %s", obj, reflect.TypeFor[T]())
	}
	return object, nil
}

var (
	errReadOnly = errors.New("only its informer writes the store: to fill a store by hand, as tests do, use a store.Indexer")
	// errStopped ends in the words of client-go's error, since programs match those words.
	errStopped = fmt.Errorf("clientgo: %w: the handler was not added to shared informer because it has stopped already", informer.ErrStopped)
	errForeign = errors.New("clientgo: remove a handler: the registration is not one of this informer's")
	errRunning = errors.New("clientgo: set a transform: the informer has been started")
	errNilFunc = errors.New("clientgo: add a handler: the handler is nil")
	errBuilt   = errors.New("clientgo: set a transform: the informer already has its source: " +
		"wrap the source in one that transforms, or use NewInformer")
	errReflect = errors.New("clientgo: set a watch error handler: it takes client-go's reflector, which does not exist here: use " +
		"informer.WithReflector with reflector.WithLogger or reflector.WithMetrics, or read the informer's Status")
)

// Informer adapts an informer to a cache.SharedIndexInformer. Run it either by the informer's own
// Run or, once, by the result's. The result's Run cannot return an error, so it reports one to
// k8s.io/apimachinery's runtime.HandleError, and lets a handler's panic end the process.
//
// Its handlers are the informer's, and appear in its Status. It is safe for concurrent use. It
// panics if i is nil.
//
// The result has one more method, Status() [informer.Status], which a type assertion finds:
//
//	health := shared.(interface{ Status() informer.Status }).Status()
func Informer[T store.Object](i *informer.Informer[T]) cache.SharedIndexInformer {
	if i == nil {
		panic("clientgo: Informer: the informer is nil")
	}
	return &shared[T]{informer: i, indexer: newIndexer(i)}
}

// NewInformer replaces cache.NewSharedIndexInformer in code that accepts a constructor. Its
// informer holds objects of the type of example and no other; nil accepts any type. resync is the
// interval of redelivery for handlers that ask for none; see [informer.WithRedelivery].
//
// It reads through client-go's client, which decodes each object by itself: nothing is shared
// between objects, as [listwatch.FromClient] does. SetTransform works until Run. The result has
// Status, as that of [Informer]. It panics if an indexer cannot be added, which is a mistake in the
// program.
func NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	source := &checked{want: reflect.TypeOf(example)}
	i := informer.New(listwatch.Intercept(listwatch.FromClientGo[Object](lw), source.list, source.watch))
	s := &shared[Object]{informer: i, indexer: newIndexer(i), source: source, resync: resync}
	if err := s.indexer.AddIndexers(indexers); err != nil {
		panic(err)
	}
	return s
}

// shared is an informer as a cache.SharedIndexInformer, and as the cache.Controller of
// GetController.
type shared[T store.Object] struct {
	informer *informer.Informer[T]
	indexer  *indexer[T]
	source   *checked // only for NewInformer
	resync   time.Duration
}

func (s *shared[T]) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithResyncPeriod(handler, s.resync)
}

func (s *shared[T]) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, o cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	if o.ResyncPeriod == nil {
		return s.AddEventHandler(handler)
	}
	return s.AddEventHandlerWithResyncPeriod(handler, *o.ResyncPeriod)
}

func (s *shared[T]) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, every time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	if handler == nil {
		return nil, errNilFunc
	}
	h, err := s.informer.AddHandler(func(e informer.Event[T]) { tell(handler, e) }, informer.WithRedelivery(every))
	if errors.Is(err, informer.ErrStopped) {
		return nil, errStopped
	}
	if err != nil {
		return nil, err
	}
	return &registration[T]{informer: s.informer, handler: h, removed: make(chan struct{})}, nil
}

func tell[T store.Object](handler cache.ResourceEventHandler, e informer.Event[T]) {
	switch {
	case e.Type == informer.Added:
		handler.OnAdd(e.New, e.Initial)
	case e.Type == informer.Deleted && e.Missed:
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: e.Key, Obj: e.Old})
	case e.Type == informer.Deleted:
		handler.OnDelete(e.Old)
	default:
		handler.OnUpdate(e.Old, e.New)
	}
}

// RemoveEventHandler does not block, as the interface demands; cache.ShutDownEventHandler does.
func (s *shared[T]) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration[T])
	if !ok || r.informer != s.informer {
		return errForeign
	}
	r.remove()
	return nil
}

func (s *shared[T]) GetStore() cache.Store           { return s.indexer }
func (s *shared[T]) GetIndexer() cache.Indexer       { return s.indexer }
func (s *shared[T]) GetController() cache.Controller { return s }

func (s *shared[T]) AddIndexers(indexers cache.Indexers) error {
	return s.indexer.AddIndexers(indexers)
}

func (s *shared[T]) Run(stop <-chan struct{}) { s.RunWithContext(wait.ContextForChannel(stop)) }

func (s *shared[T]) RunWithContext(ctx context.Context) {
	if s.source != nil {
		s.source.started.Store(true)
	}
	err := s.informer.Run(ctx)
	var panicked *informer.PanicError
	if errors.As(err, &panicked) {
		utilruntime.HandleErrorWithContext(ctx, err, "A handler has panicked", "stack", string(panicked.Stack))
		panic(err)
	}
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "The informer has ended")
	}
}

// Status has no place in the interface; see [Informer].
func (s *shared[T]) Status() informer.Status { return s.informer.Status() }

func (s *shared[T]) HasSynced() bool { return isClosed(s.informer.Synced()) }
func (s *shared[T]) HasSyncedChecker() cache.DoneChecker {
	return checker{"informer", s.informer.Synced()}
}
func (s *shared[T]) IsStopped() bool                 { return isClosed(s.informer.Done()) }
func (s *shared[T]) LastSyncResourceVersion() string { return s.informer.Snapshot().ResourceVersion() }

func (s *shared[T]) SetWatchErrorHandler(cache.WatchErrorHandler) error { return errReflect }

func (s *shared[T]) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return errReflect
}

func (s *shared[T]) SetTransform(transform cache.TransformFunc) error {
	switch {
	case s.source == nil && transform == nil:
		return nil
	case s.source == nil:
		return errBuilt
	case s.source.started.Load():
		return errRunning
	}
	s.source.transform.Store(&transform)
	return nil
}

// registration is a handler's cache.ResourceEventHandlerRegistration.
type registration[T store.Object] struct {
	informer *informer.Informer[T]
	handler  *informer.Handler[T]
	once     sync.Once
	removed  chan struct{} // closed when the handler has returned for the last time, after remove
}

// remove halts the handler, which may be the caller, so a goroutine waits for its end.
func (r *registration[T]) remove() {
	r.once.Do(func() {
		r.handler.Halt()
		go func() {
			r.handler.Remove()
			close(r.removed)
		}()
	})
}

func (r *registration[T]) HasSynced() bool { return isClosed(r.handler.Synced()) }

func (r *registration[T]) HasSyncedChecker() cache.DoneChecker {
	return checker{r.handler.Name(), r.handler.Synced()}
}

// ShutdownChan is awaited by cache.ShutDownEventHandler.
func (r *registration[T]) ShutdownChan() <-chan struct{} { return r.removed }

type checker struct {
	name string
	done <-chan struct{}
}

func (c checker) Name() string          { return c.name }
func (c checker) Done() <-chan struct{} { return c.done }

func isClosed(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}

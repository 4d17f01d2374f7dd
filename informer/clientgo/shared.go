package clientgo

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/clientgo/internal/across"
	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Informer adapts an informer to a cache.SharedIndexInformer. Run it either by the informer's own
// Run or, once, by the result's. The result's Run cannot return an error, so it reports one to
// k8s.io/apimachinery's runtime.HandleError, and lets a handler's panic end the process.
//
// Its handlers are the informer's, and appear in its Status. It is safe for concurrent use. It
// panics if i is nil.
//
// GetStore and GetIndexer can be written at any time, as tests do, and readers see the content
// written. No handler is told. As in client-go, the next event of a key overrides the content
// written there, and the next list overrides all. The first write copies the collection's index of
// keys, which is O(n); objects are not copied.
//
// [StatusOf] has its health.
func Informer[T store.Object](i *informer.Informer[T]) cache.SharedIndexInformer {
	if i == nil {
		panic("clientgo: Informer: the informer is nil")
	}
	return newShared[T](i).asClientGo()
}

// Union adapts a union to a cache.SharedIndexInformer; otherwise it is [Informer].
func Union[T store.Object](u *informer.Union[T]) cache.SharedIndexInformer {
	if u == nil {
		panic("clientgo: Union: the union is nil")
	}
	return newShared[T](u).asClientGo()
}

func newShared[T store.Object](i copied[T]) *shared[T] {
	content := &byHand[T]{informer: i}
	return &shared[T]{informer: i, indexer: newIndexer(content, content.open), panicked: make(chan *informer.PanicError, 1)}
}

// copied is the common part of informers and unions.
type copied[T store.Object] interface {
	store.Snapshotter[T]
	Get(key string) (T, bool)
	Run(context.Context) error
	AddHandler(func(informer.Event[T]), ...informer.HandlerOption) (*informer.Handler[T], error)
	AddMetaHandler(func(informer.Event[store.Object]), ...informer.HandlerOption) (*informer.Handler[T], error)
	Synced() <-chan struct{}
	Done() <-chan struct{}
	Status() informer.Status
}

// NewInformer replaces cache.NewSharedIndexInformer in code that accepts a constructor. Its
// informer holds objects of the type of example and no other; nil accepts any type. resync is the
// interval of redelivery for handlers that ask for none; see [informer.WithRedelivery]. Zero means
// none for all handlers, as in client-go.
//
// It reads through client-go's client, which decodes each object by itself: nothing is shared
// between objects, as [listwatch.FromClient] does. SetTransform works until Run. The result has
// Status, as that of [Informer]. It panics if an indexer cannot be added, which is a mistake in the
// program. If lw is nil, the result is a store, as tests make one, and its Run panics.
func NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return NewSharedIndexInformerWithOptions(lw, example, cache.SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: indexers})
}

// NewSharedIndexInformerWithOptions replaces the function of that name in package cache, for newer
// generated code. It is [NewInformer] with these options. ObjectDescription has no effect, since
// our log has descriptions of its own. With an Identifier, the informer has client-go's metrics.
func NewSharedIndexInformerWithOptions(
	lw cache.ListerWatcher, example runtime.Object, options cache.SharedIndexInformerOptions,
) cache.SharedIndexInformer {
	s := newInformer(orNone(lw), false, example, options.ResyncPeriod)
	if err := s.indexer.AddIndexers(options.Indexers); err != nil {
		panic(err)
	}
	all := across.SharedIndexInformerOptions{SharedIndexInformerOptions: options}
	s.published.Identifier, s.published.InformerMetricsProvider = all.Identifier, all.InformerMetricsProvider
	if err := s.SetShard(all.ShardSelector); err != nil {
		panic(err) // it has not started
	}
	return s.asClientGo()
}

// none stands for a nil ListerWatcher, with which client-go makes an informer, too.
type none struct {
	listwatch.ListerWatcher[Object] // nil: Run does not come so far
}

func orNone(lw cache.ListerWatcher) listwatch.ListerWatcher[Object] {
	if lw == nil {
		return none{}
	}
	return fromClientGo(lw)
}

func fromClientGo(lw cache.ListerWatcher) listwatch.ListerWatcher[Object] {
	return listwatch.FromClientGo[Object](lw, adapters.AsClientGo.(listwatch.FuncsOption))
}

// newInformer makes an informer. Its transform and its watch error handler may be set until Run.
func newInformer(
	source listwatch.ListerWatcher[Object], shares bool, example runtime.Object, resync time.Duration, optionList ...informer.Option,
) *shared[Object] {
	check := &checked{want: reflect.TypeOf(example), shares: shares, source: source}
	errs := newWatchErrors(example)
	s := newShared[Object](informer.New(
		watched(listwatch.Intercept(source, check.list, check.watch), errs), optionList...))
	s.source, s.errs, s.resync = check, errs, resync
	return s
}

// NewIndexerInformer replaces cache.NewIndexerInformer, and cache.NewInformer: it returns the store
// of a new informer with one handler, and the controller that runs it. It panics as [NewInformer]
// does, and if the handler is nil.
func NewIndexerInformer(
	lw cache.ListerWatcher, example runtime.Object, resync time.Duration, handler cache.ResourceEventHandler, indexers cache.Indexers,
) (cache.Indexer, cache.Controller) {
	if indexers == nil {
		indexers = cache.Indexers{}
	}
	content, controller := NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: lw, ObjectType: example, ResyncPeriod: resync, Handler: handler, Indexers: indexers,
	})
	return content.(cache.Indexer), controller
}

// NewInformerWithOptions replaces cache.NewInformerWithOptions: it returns the store of a new
// informer with one handler, and the controller that runs it. The store is a cache.Indexer. It
// panics as [NewIndexerInformer] does.
func NewInformerWithOptions(options cache.InformerOptions) (cache.Store, cache.Controller) {
	all := across.InformerOptions{InformerOptions: options}
	s := newInformer(orNone(options.ListerWatcher), false, options.ObjectType, options.ResyncPeriod,
		informer.WithReflector(reflectorOptions(all.Logger, options.MinWatchTimeout)...))
	s.published.Identifier, s.published.InformerMetricsProvider = all.Identifier, all.InformerMetricsProvider
	err := errors.Join(s.indexer.AddIndexers(options.Indexers), s.SetTransform(options.Transform))
	if err == nil {
		_, err = s.AddEventHandlerWithOptions(options.Handler, cache.HandlerOptions{Logger: all.Logger})
	}
	if err != nil {
		panic(err)
	}
	return s.indexer, s.asClientGo()
}

// StatusOf is the Status of an informer that may be ours, behind whatever wrapper: generated
// factories of client-go 0.37 return one. It is false for informers of client-go.
func StatusOf(i cache.SharedInformer) (informer.Status, bool) {
	ours, ok := i.GetController().(interface{ Status() informer.Status })
	if !ok {
		return informer.Status{}, false
	}
	return ours.Status(), true
}

// onlooker is the controller of a shared informer. Programs that run it, such as the garbage
// collector of Kubernetes, do not run the informer, nor end it for others: client-go's is the same.
type onlooker struct {
	cache.SharedIndexInformer
	status func() informer.Status
}

func (onlooker) Run(<-chan struct{})            {}
func (onlooker) RunWithContext(context.Context) {}

// Status is read by StatusOf.
func (o onlooker) Status() informer.Status { return o.status() }

// shared is an informer as a cache.SharedIndexInformer.
type shared[T store.Object] struct {
	informer copied[T]
	indexer  *indexer[T]
	source   *checked     // only for NewInformer
	errs     *watchErrors // likewise
	resync   time.Duration
	panicked chan *informer.PanicError // holds the first one

	published across.InformerOptions // the name and the metrics, nothing else
}

func (s *shared[T]) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithResyncPeriod(handler, s.resync)
}

func (s *shared[T]) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, o cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	if o.ResyncPeriod == nil {
		o.ResyncPeriod = &s.resync
	}
	return s.add(handler, *o.ResyncPeriod, o.Logger)
}

func (s *shared[T]) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, every time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return s.add(handler, every, nil)
}

func (s *shared[T]) add(handler cache.ResourceEventHandler, every time.Duration, log *klog.Logger) (cache.ResourceEventHandlerRegistration, error) {
	metadata, byMetadata := handler.(metadataHandler)
	if byMetadata {
		handler = metadata.ResourceEventHandler
	}
	if handler == nil {
		return nil, errNilFunc
	}
	if log == nil {
		background := klog.Background()
		log = &background
	}
	r := &registration[T]{informer: s.informer, crash: s.crash, halted: make(chan struct{}), removed: make(chan struct{})}
	var h *informer.Handler[T]
	var err error
	if redelivery := informer.WithRedelivery(s.resyncPeriod(every)); byMetadata {
		h, err = s.informer.AddMetaHandler(func(e informer.Event[store.Object]) { tellOf(r, handler, *log, e) }, redelivery)
	} else {
		h, err = s.informer.AddHandler(func(e informer.Event[T]) { tellOf(r, handler, *log, e) }, redelivery)
	}
	if errors.Is(err, informer.ErrStopped) {
		return nil, errStopped
	}
	if err != nil {
		return nil, err
	}
	r.handler = h
	return completedRegistration(r, across.Informer{}), nil
}

// resyncPeriod reads a handler's period as client-go does. A negative one means none, and one of
// less than a second would redeliver without a pause. An informer that was made without a period
// never redelivers.
func (s *shared[T]) resyncPeriod(every time.Duration) time.Duration {
	if every <= 0 || s.source != nil && s.resync <= 0 {
		return 0
	}
	return max(every, time.Second)
}

// afterPanic is how long a handler that has panicked rests, as in client-go: one that always panics
// would else flood the log.
const afterPanic = time.Second

// tellOf obeys runtime.ReallyCrash: without it, a panic is logged and costs the event only.
func tellOf[T, E store.Object](r *registration[T], handler cache.ResourceEventHandler, log klog.Logger, e informer.Event[E]) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if utilruntime.ReallyCrash {
			// The informer waits for its other handlers, of which one may be blocked: tell Run.
			value := recover()
			r.crash(&informer.PanicError{
				Handler: fmt.Sprintf("%T", handler), Type: e.Type, Key: e.Key, Value: value, Stack: debug.Stack(),
			})
			if value != nil {
				panic(value)
			}
			return
		}
		select {
		case <-time.After(afterPanic):
		case <-r.halted:
		case <-r.informer.Done():
		}
	}()
	if !utilruntime.ReallyCrash {
		defer utilruntime.HandleCrashWithLogger(log)
	}
	tell(handler, e)
	returned = true
}

func tell[T store.Object](handler cache.ResourceEventHandler, e informer.Event[T]) {
	switch {
	case e.Type == informer.Added:
		handler.OnAdd(e.New, e.Initial)
	case e.Type == informer.Deleted && !e.Final:
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: e.Key, Obj: e.Old})
	case e.Type == informer.Deleted:
		handler.OnDelete(e.Old)
	default:
		handler.OnUpdate(e.Old, e.New)
	}
}

// RemoveEventHandler does not block, as the interface demands; cache.ShutDownEventHandler does. As
// in client-go, it does nothing to a handler of another informer.
func (s *shared[T]) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	if r, ok := handle.(interface{ of() *registration[T] }); ok && r.of().informer == s.informer {
		r.of().remove()
	}
	return nil
}

func (s *shared[T]) GetStore() cache.Store           { return s.indexer }
func (s *shared[T]) GetIndexer() cache.Indexer       { return s.indexer }
func (s *shared[T]) GetController() cache.Controller { return onlooker{s.asClientGo(), s.Status} }

func (s *shared[T]) AddIndexers(indexers cache.Indexers) error {
	return s.indexer.AddIndexers(indexers)
}

func (s *shared[T]) Run(stop <-chan struct{}) { s.RunWithContext(wait.ContextForChannel(stop)) }

func (s *shared[T]) RunWithContext(ctx context.Context) {
	if s.source != nil {
		if s.source.source == (none{}) {
			panic("clientgo: Run: the informer was made with a ListerWatcher that is nil")
		}
		s.source.started.Store(true)
	}
	if s.errs != nil {
		s.errs.ctx.Store(&ctx)
	}
	if s.published.Identifier.Reserved() {
		published := s.publish(ctx)
		defer published()
	}
	ended := make(chan error, 1)
	go func() { ended <- s.informer.Run(ctx) }()
	select {
	case err := <-ended:
		var panicked *informer.PanicError
		if errors.As(err, &panicked) {
			crash(ctx, panicked)
		}
		if err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "The informer has ended")
		}
	case panicked := <-s.panicked:
		// Another handler may be blocked for ever, so nothing is waited for.
		crash(ctx, panicked)
	}
}

// crash is called by a handler that has panicked.
func (s *shared[T]) crash(panicked *informer.PanicError) {
	select {
	case s.panicked <- panicked:
	default: // another one was first
	}
}

// crash reports the panic to the program's error handlers, too, as client-go does.
func crash(ctx context.Context, panicked *informer.PanicError) {
	utilruntime.HandleErrorWithContext(ctx, panicked, "A handler has panicked", "stack", string(panicked.Stack))
	if panicked.Value != nil {
		panic(panicked.Value)
	}
	panic(panicked)
}

// Status has no place in the interface; see [Informer].
func (s *shared[T]) Status() informer.Status { return s.informer.Status() }

func (s *shared[T]) HasSynced() bool                 { return isClosed(s.informer.Synced()) }
func (s *shared[T]) IsStopped() bool                 { return isClosed(s.informer.Done()) }
func (s *shared[T]) LastSyncResourceVersion() string { return s.informer.Snapshot().ResourceVersion() }

func (s *shared[T]) SetWatchErrorHandler(handle cache.WatchErrorHandler) error {
	return s.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handle(r, err) })
}

func (s *shared[T]) SetWatchErrorHandlerWithContext(handle cache.WatchErrorHandlerWithContext) error {
	switch {
	case s.errs == nil:
		return errUnheard
	case s.source.started.Load():
		return errStarted
	}
	s.errs.handle.Store(&handle)
	return nil
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

// SetShard keeps the objects of one shard of what the source sends, for factories; see [complete].
func (s *shared[T]) SetShard(selector any) error {
	shard, known := selector.(shardSelector)
	switch {
	case selector == nil && s.source == nil:
		return nil
	case s.source == nil || selector != nil && !known:
		panic(errShard)
	case s.source.started.Load():
		klog.Background().Error(errLateShard, "The selector has no effect") // a factory drops it
		return errLateShard
	case selector == nil:
		s.source.shard.Store(nil)
	default:
		s.source.shard.Store(&shard)
	}
	return nil
}

// registration is a handler's cache.ResourceEventHandlerRegistration.
type registration[T store.Object] struct {
	informer copied[T]
	crash    func(*informer.PanicError)
	handler  *informer.Handler[T]
	once     sync.Once
	halted   chan struct{} // closed by remove
	removed  chan struct{} // closed when the handler has returned for the last time, after remove
}

// remove halts the handler, which may be the caller, so a goroutine waits for its end.
func (r *registration[T]) remove() {
	r.once.Do(func() {
		close(r.halted)
		r.handler.Halt()
		go func() {
			r.handler.Remove()
			close(r.removed)
		}()
	})
}

func (r *registration[T]) HasSynced() bool { return isClosed(r.handler.Synced()) }

func (r *registration[T]) of() *registration[T] { return r }

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

var (
	// errStopped ends in the words of client-go's error, since programs match those words.
	errStopped = fmt.Errorf("clientgo: %w: the handler was not added to shared informer because it has stopped already", informer.ErrStopped)
	errRunning = errors.New("clientgo: set a transform: the informer has already started")
	errNilFunc = errors.New("clientgo: add a handler: the handler is nil")
	errShard   = errors.New("clientgo: set a shard selector: the informer already has its source: " +
		"wrap the source in one that leaves the other shards out, or use NewInformer")
	errLateShard = errors.New("clientgo: set a shard selector: the informer has already started")
	errBuilt     = errors.New("clientgo: set a transform: the informer already has its source: " +
		"wrap the source in one that transforms, or use NewInformer")
	errStarted = errors.New("clientgo: set a watch error handler: the informer has already started")
	errUnheard = errors.New("clientgo: set a watch error handler: the informer already has its source: " +
		"wrap the source in WithWatchErrors, or use NewInformer")
)

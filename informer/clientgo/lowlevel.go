package clientgo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/informer/clientgo/internal/across"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
)

// Reflector keeps a store of the program's own equal to a collection, as a *cache.Reflector does.
// Its methods are safe for concurrent use.
type Reflector struct {
	name, description string

	source       *listwatch.ListWatch[Object]
	target       *target
	kept         *reflector.Reflector[Object]
	errs         *watchErrors
	resync       time.Duration
	shouldResync func() bool // nil: always
}

// NewReflector replaces cache.NewReflector, for programs with a store of their own. It keeps store
// equal to the collection that lw reads. Objects have the type of example; nil accepts any type.
// store's Resync is called at every resync, from the first list on; zero means never.
//
// As in client-go, the store gets each list whole and each event alone, one call at a time except
// for Resync. If the store refuses a change, the collection is listed again. NewReflector panics if
// lw is nil.
func NewReflector(lw cache.ListerWatcher, example any, store cache.ReflectorStore, resync time.Duration) *Reflector {
	return NewReflectorWithOptions(lw, example, store, cache.ReflectorOptions{ResyncPeriod: resync})
}

// NewReflectorWithOptions is NewReflector with client-go's options, and replaces NewNamedReflector
// too. Clock has no effect. Backoff sets the first delay and the longest one, if it has both.
func NewReflectorWithOptions(lw cache.ListerWatcher, example any, store cache.ReflectorStore, options cache.ReflectorOptions) *Reflector {
	all := across.ReflectorOptions{ReflectorOptions: options}
	optionList := reflectorOptions(all.Logger, options.MinWatchTimeout)
	if b := all.Backoff; b != nil && b.Duration > 0 && b.Cap >= b.Duration {
		optionList = append(optionList, reflector.WithBackoff(b.Duration, b.Cap))
	}
	r := newReflector(lw, example, store, optionList)
	r.resync = options.ResyncPeriod
	if options.TypeDescription != "" {
		r.description = options.TypeDescription
	}
	if r.name = options.Name; r.name == "" {
		r.name = "tributary: " + r.description
	}
	return r
}

func newReflector(lw cache.ListerWatcher, example any, store cache.ReflectorStore, optionList []reflector.Option) *Reflector {
	check := &checked{want: reflect.TypeOf(example)}
	r := &Reflector{target: &target{to: store}, errs: newWatchErrors(example), description: fmt.Sprint(check.want)}
	r.source = watched(listwatch.Intercept(fromClientGo(lw), check.list, check.watch), r.errs)
	r.kept = reflector.New(r.source, r.target, optionList...)
	return r
}

// leastWatchTimeout is client-go's: it obeys no shorter one.
const leastWatchTimeout = 5 * time.Minute

// reflectorOptions has the options that client-go's constructors share.
func reflectorOptions(log *klog.Logger, watchTimeout time.Duration) (optionList []reflector.Option) {
	if log != nil {
		optionList = append(optionList, reflector.WithLogger(*log))
	}
	if watchTimeout > leastWatchTimeout {
		optionList = append(optionList, reflector.WithWatchTimeout(watchTimeout))
	}
	return optionList
}

// Name is the name of the options, or one with the type.
func (r *Reflector) Name() string { return r.name }

// TypeDescription is that of the options, or the type of the objects.
func (r *Reflector) TypeDescription() string { return r.description }

// LastSyncResourceVersion is the newest version with its effects in the store.
func (r *Reflector) LastSyncResourceVersion() string { return r.Status().ResourceVersion }

// Status is the health of the store.
func (r *Reflector) Status() reflector.Status { return r.kept.Status() }

// Run is [Reflector.RunWithContext] until stop is closed.
func (r *Reflector) Run(stop <-chan struct{}) { r.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext keeps the store until ctx ends. It blocks, and is called once. It reports an
// error, such as that of a second call, to k8s.io/apimachinery's runtime.HandleError.
func (r *Reflector) RunWithContext(ctx context.Context) {
	r.errs.ctx.Store(&ctx)
	var resyncing sync.WaitGroup
	resyncs, stop := context.WithCancel(ctx)
	if r.resync > 0 {
		resyncing.Go(func() { r.resyncRepeatedly(resyncs) })
	}
	err := r.kept.Run(ctx)
	stop()
	resyncing.Wait()
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "The reflector has ended", "reflector", r.name)
	}
}

func (r *Reflector) resyncRepeatedly(ctx context.Context) {
	if r.kept.WaitSynced(ctx) != nil {
		return
	}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.resync):
		}
		if r.shouldResync != nil && !r.shouldResync() {
			return
		}
		if err := r.target.to.Resync(); err != nil {
			utilruntime.HandleErrorWithContext(ctx, err, "The store has refused a resync", "reflector", r.name)
		}
	}, 0)
}

// target writes into a store of client-go's interface.
type target struct{ to cache.ReflectorStore }

func (t *target) Add(obj Object) error    { return t.to.Add(obj) }
func (t *target) Update(obj Object) error { return t.to.Update(obj) }
func (t *target) Delete(obj Object) error { return t.to.Delete(obj) }

func (t *target) Replace(items iter.Seq2[Object, error], resourceVersion func() string) error {
	all := []any{}
	for obj, err := range items {
		if err != nil {
			return err
		}
		all = append(all, obj)
	}
	return t.to.Replace(all, resourceVersion())
}

// Bookmark is optional in client-go.
func (t *target) Bookmark(resourceVersion string) error {
	if to, ok := t.to.(interface{ Bookmark(string) error }); ok {
		return to.Bookmark(resourceVersion)
	}
	return nil
}

// New replaces cache.New, for programs with a queue and a Process of their own, as CoreDNS: the
// controller's reflector is ours, and fills the queue of config. As in client-go, Process is called
// for each item of the queue, on the goroutine of Run, and its errors are dropped. It panics if the
// ListerWatcher is nil.
func New(config *cache.Config) cache.Controller {
	optionList := reflectorOptions(nil, config.MinWatchTimeout)
	if config.WatchListPageSize > 0 {
		optionList = append(optionList, reflector.WithPageSize(config.WatchListPageSize))
	}
	r := newReflector(config.ListerWatcher, config.ObjectType, config.Queue, optionList)
	r.name, r.resync, r.shouldResync = "tributary: "+r.description, config.FullResyncPeriod, config.ShouldResync
	if handle := config.WatchErrorHandlerWithContext; handle != nil {
		r.errs.handle.Store(&handle)
	}
	if handle := config.WatchErrorHandler; handle != nil {
		with := cache.WatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handle(r, err) })
		r.errs.handle.Store(&with)
	}
	return completedController(&controller{config: *config, Reflector: r}, across.Informer{})
}

// controller fills a queue, and processes its items.
type controller struct {
	*Reflector
	config cache.Config
}

func (c *controller) HasSynced() bool { return c.config.Queue.HasSynced() }

func (c *controller) Run(stop <-chan struct{}) { c.RunWithContext(wait.ContextForChannel(stop)) }

func (c *controller) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	defer context.AfterFunc(ctx, c.config.Queue.Close)()
	var filling sync.WaitGroup
	filling.Go(func() { c.Reflector.RunWithContext(ctx) })
	wait.UntilWithContext(ctx, c.process, time.Second)
	filling.Wait()
}

// process handles items until the queue is closed. As in client-go, a panic ends it, and it begins
// anew after a second.
func (c *controller) process(ctx context.Context) {
	pop := func() error {
		_, err := c.config.Pop(cache.PopProcessFunc(c.config.Process))
		return err
	}
	if c.config.ProcessBatch != nil && features.FeatureGates().Enabled(features.InOrderInformersBatchProcess) {
		switch queue := c.config.Queue.(type) {
		case interface {
			PopBatch(cache.ProcessBatchFunc, cache.PopProcessFunc) error
		}:
			pop = func() error { return queue.PopBatch(c.config.ProcessBatch, cache.PopProcessFunc(c.config.Process)) }
		case interface {
			PopBatch(cache.ProcessBatchFunc) error // of client-go 0.35
		}:
			pop = func() error { return queue.PopBatch(c.config.ProcessBatch) }
		}
	}
	for ctx.Err() == nil && !errors.Is(pop(), cache.ErrFIFOClosed) {
	}
}

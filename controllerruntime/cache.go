package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/refs"
)

// Cache is a cache.Cache on Tributary's stores. [NewCache] makes one. All methods are safe for
// concurrent use. A collection begins with the first read, informer or index of its kind, and ends
// with RemoveInformer or with the context of Start.
type Cache struct {
	options  cache.Options
	sources  sources
	settings settings
	lean     lean

	mu          sync.Mutex
	collections map[kind]*collection
	names       map[kind]*names                                    // of lean kinds
	refused     map[kind]refusal                                   // of RefuseAbove
	start       func(run func(context.Context)) context.CancelFunc // set by Start
	// over is set by Start, and closes when its context ends. From ended on nothing may be started.
	over    <-chan struct{}
	ended   bool
	running sync.WaitGroup
	started chan struct{} // closed by Start
}

// NewCache makes a [Cache], for NewCache in ctrl.Options and cluster.Options. It asks the server
// for the kinds of the API that options.ByObject names, if options has no Mapper. It fails if
// options contradict each other, or name a kind that the scheme or the server does not know.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	return newCache(config, options, nil)
}

func newCache(config *rest.Config, options cache.Options, own []Option) (cache.Cache, error) {
	if options.NewInformer != nil {
		return nil, errors.New("controllerruntime: NewInformer is set: this cache makes its own informers: remove NewInformer or NewCache")
	}
	sources, err := newSources(config, options)
	if err != nil {
		return nil, fmt.Errorf("controllerruntime: %w", err)
	}
	extras := extras{lean: lean{idle: defaultLeanIdle}}
	if err := null.Options("controllerruntime: NewCacheWith", own, func(option Option) { option(&extras) }); err != nil {
		return nil, err
	}
	settings, err := newSettings(options, sources)
	if err != nil {
		return nil, fmt.Errorf("controllerruntime: %w", err)
	}
	settings.failFast, settings.oneWatch = extras.failFast, extras.oneWatch
	settings.warnAbove, settings.refuseAbove = extras.warnAbove, extras.refuseAbove
	if err := settings.validate(); err != nil {
		return nil, fmt.Errorf("controllerruntime: %w", err)
	}
	if settings.packed, err = extras.packed.resolve(sources); err != nil {
		return nil, fmt.Errorf("controllerruntime: %w", err)
	}
	lean, err := extras.lean.resolve(sources)
	if err != nil {
		return nil, fmt.Errorf("controllerruntime: %w", err)
	}
	return &Cache{
		options: options, sources: sources, settings: settings, lean: lean,
		collections: map[kind]*collection{}, names: map[kind]*names{}, refused: map[kind]refusal{}, started: make(chan struct{}),
	}, nil
}

// Get implements client.Reader. The object is copied unless options say otherwise.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, out client.Object, optionList ...client.GetOption) error {
	k, err := c.kindOf(out)
	if err != nil {
		return err
	}
	options := (&client.GetOptions{}).ApplyOptions(optionList)
	if c.lean.has(k) {
		byName, err := c.readNames(k, out)
		if err != nil {
			return err
		}
		err = byName.get(ctx, key, out, options)
		if errors.Is(err, refs.ErrStopped) {
			err = errors.Join(c.runs(), err)
		}
		return err
	}
	held, err := c.read(ctx, k, out, byGet)
	if err != nil {
		return err
	}
	return held.get(key, out, options)
}

// List implements client.Reader. The result is one instant of the collection. Of several
// namespaces, its resource version is the oldest one: the list is complete up to it.
func (c *Cache) List(ctx context.Context, out client.ObjectList, optionList ...client.ListOption) error {
	k, err := c.kindOf(out)
	if err != nil {
		return err
	}
	k.Kind = strings.TrimSuffix(k.Kind, "List")
	if err := c.lean.refuse("list", k, "list it as metav1.PartialObjectMetadataList"); err != nil {
		return err
	}
	options := client.ListOptions{}
	options.ApplyOptions(optionList)
	if options.Continue != "" {
		return errContinue
	}
	held, err := c.read(ctx, k, nil, byList)
	if err != nil {
		return err
	}
	return held.list(out, options)
}

// errContinue has controller-runtime's text, which programs may match.
var errContinue = errors.New("continue list option is not supported by the cache")

// read returns a synced collection for a reader.
func (c *Cache) read(ctx context.Context, k kind, example runtime.Object, by beginner) (*collection, error) {
	if err := c.mayBegin(ctx, k, example); err != nil {
		return nil, err
	}
	held, started, err := c.collection(k, example, by)
	switch {
	case err != nil:
		return nil, err
	case !started:
		return nil, &cache.ErrCacheNotStarted{}
	}
	return held, c.waitSynced(ctx, held)
}

// GetInformer implements cache.Informers. The result is a cache.SharedIndexInformer of client-go.
func (c *Cache) GetInformer(ctx context.Context, obj client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	k, err := c.kindOf(obj)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, k, obj, options)
}

// GetInformerForKind is GetInformer for the typed form of a kind in the scheme.
func (c *Cache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	obj, err := c.sources.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return c.informer(ctx, kind{gvk, formOf(obj)}, obj, options)
}

func (c *Cache) informer(ctx context.Context, k kind, example runtime.Object, optionList []cache.InformerGetOption) (cache.Informer, error) {
	var options cache.InformerGetOptions
	for _, option := range optionList {
		option(&options)
	}
	if err := c.lean.refuse("watch", k, "watch its metadata with builder.OnlyMetadata, or what requests have read with NewReads"); err != nil {
		return nil, err
	}
	held, started, err := c.collection(k, example, byInformer)
	if err != nil {
		return nil, err
	}
	if started && (options.BlockUntilSynced == nil || *options.BlockUntilSynced) {
		if err := c.waitSynced(ctx, held); err != nil {
			return nil, err
		}
	}
	return held.shared, nil
}

// RemoveInformer ends the collection of the object's kind, in the form of obj, and frees its
// memory. A later read begins a new one. Of a lean kind, it lets all names go.
func (c *Cache) RemoveInformer(_ context.Context, obj client.Object) error {
	k, err := c.kindOf(obj)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if held, ok := c.collections[k]; ok {
		held.stop()
		delete(c.collections, k)
	}
	if held, ok := c.names[k]; ok {
		held.stop()
		delete(c.names, k)
	}
	return nil
}

// IndexField adds an index for lists with a field selector; values computes an object's values. It
// may be called before or after Start, and does not wait for the collection. It fails if the kind
// has an index of that field.
func (c *Cache) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	k, err := c.kindOf(obj)
	if err != nil {
		return err
	}
	if err := c.lean.refuse("index", k, "index its metadata"); err != nil {
		return err
	}
	held, _, err := c.collection(k, obj, byIndex)
	if err != nil {
		return err
	}
	return held.addIndex(field, values)
}

// Start runs the collections until ctx ends, which is no error. It blocks, and everything that it
// started has ended when it returns. A second call fails.
func (c *Cache) Start(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.running.Wait()
	return nil
}

func (c *Cache) begin(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start != nil {
		return errors.New("controllerruntime: informer already started: Start was called twice")
	}
	c.over = ctx.Done()
	c.start = func(run func(context.Context)) context.CancelFunc {
		own, stop := context.WithCancel(ctx)
		c.running.Go(func() {
			defer stop()
			run(own)
		})
		return stop
	}
	for _, held := range c.collections {
		held.stop = c.start(held.run)
	}
	close(c.started)
	return nil
}

// NeedLeaderElection is false: a replica that is not the leader keeps its cache too.
func (c *Cache) NeedLeaderElection() bool { return false }

// Ready returns nil if Start runs and all collections are ready, as [informer.Informer.Ready] says;
// otherwise the error names the others and their faults. reflector.ReadyHandler accepts a cache.
func (c *Cache) Ready(maxStaleness time.Duration) error {
	if err := c.runs(); err != nil {
		return err
	}
	var all []error
	for k, held := range c.all() {
		if err := held.copy.Ready(maxStaleness); err != nil {
			all = append(all, fmt.Errorf("%s: %w", k, err))
		}
	}
	slices.SortFunc(all, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(all...)
}

// ofKind returns the collections and names of a kind, in all forms.
func (c *Cache) ofKind(gvk schema.GroupVersionKind) (all []view) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, form := range []form{typed, document, metadata} {
		if held, ok := c.collections[kind{gvk, form}]; ok {
			all = append(all, held)
		}
		if held, ok := c.names[kind{gvk, form}]; ok {
			all = append(all, held)
		}
	}
	return all
}

func (c *Cache) has(k kind, held *collection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.collections[k] == held
}

// collection returns the collection of a kind, and makes it if need be. example may be nil.
func (c *Cache) collection(k kind, example runtime.Object, by beginner) (held *collection, started bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	started = c.start != nil
	if held, ok := c.collections[k]; ok {
		if !by.reads() {
			held.limit.lift()
		}
		return held, started, nil
	}
	if by.reads() && c.options.ReaderFailOnMissingInformer {
		return nil, started, &cache.ErrResourceNotCached{GVK: k.GroupVersionKind}
	}
	held, err = newCollection(k, example, c.settings, c.sources, by)
	if err != nil {
		return nil, started, err
	}
	if held.limit != nil {
		held.limit.refuse = func() error { return c.refuse(k, held) }
	}
	c.collections[k] = held
	if started && !c.ended {
		held.stop = c.start(held.run)
	}
	return held, started, nil
}

// readNames returns the names of a lean kind for a reader.
func (c *Cache) readNames(k kind, example runtime.Object) (*names, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start == nil {
		return nil, &cache.ErrCacheNotStarted{}
	}
	if held, ok := c.names[k]; ok {
		return held, nil
	}
	if c.ended {
		return nil, fmt.Errorf("controllerruntime: %s: %w", k, errOver)
	}
	held, err := newNames(k, example, c.settings, c.sources, c.lean.idle, func() *collection { return c.metadataOf(k) })
	if err != nil {
		return nil, err
	}
	c.names[k] = held
	held.stop = c.start(held.run)
	return held, nil
}

// metadataOf returns the synced collection of a kind's metadata; nil if there is none.
func (c *Cache) metadataOf(k kind) *collection {
	k.form = metadata
	c.mu.Lock()
	held := c.collections[k]
	c.mu.Unlock()
	if held == nil {
		return nil
	}
	select {
	case <-held.copy.Synced():
		return held
	default:
		return nil
	}
}

// view returns what a reader of a kind waits for.
func (c *Cache) view(ctx context.Context, k kind, example runtime.Object) (view, error) {
	if c.lean.has(k) {
		return c.readNames(k, example)
	}
	return c.read(ctx, k, example, byGet)
}

package controllerruntime

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// shape is how objects of one kind in one form are selected and copied.
type shape struct {
	kind    kind
	root    bool                    // cluster scope
	configs map[string]cache.Config // by namespace; the empty one stands for all others
	deep    deepCopier
}

// collection is the objects of one kind in one form.
type collection struct {
	shape
	copy     copied
	packed   bool             // each read decodes an object, which is the reader's own
	waits    map[string]waits // by namespace, as configs
	shared   shared
	refusals *refusals          // nil without FailFast
	stop     context.CancelFunc // guarded by the cache's lock
	by       beginner
	caller   string // of the read that has begun it
	limit    *limit // nil without RefuseAbove, and if no read has begun it
	refused  error  // by the limit; guarded by the cache's lock
	// warnAbove is the number of objects that WarnAbove permits; 0 for any.
	warnAbove int

	mu     sync.RWMutex
	fields map[string]fieldIndex
}

// beginner is the call that has begun a collection.
type beginner string

const (
	byGet      beginner = "get"
	byList     beginner = "list"
	byInformer beginner = "informer"
	byIndex    beginner = "index"
)

// reads reports whether a program may begin a collection so without meaning to.
func (b beginner) reads() bool { return b == byGet || b == byList }

// copied is the common part of an informer and a union.
type copied interface {
	store.Snapshotter[object]
	Get(key string) (object, bool)
	AddIndexes(...store.AnyIndex[object])
	Synced() <-chan struct{}
	Done() <-chan struct{}
	Ready(time.Duration) error
	Status() informer.Status
	WaitForResourceVersion(context.Context, string) error
}

// waits are the waits of an informer, or of a union's member for its objects alone.
type waits interface {
	WaitFor(context.Context, object) error
	WaitForDeletion(context.Context, object) error
}

// newShape returns a kind's shape, an empty object and the resource.
func newShape(k kind, like runtime.Object, s settings, from sources) (shape, object, *meta.RESTMapping, error) {
	// Of a kind without lists, such as Binding, no copy can be kept: a read would wait for ever.
	if list := k.GroupVersion().WithKind(k.Kind + "List"); k.form == typed && !from.scheme.Recognizes(list) {
		return shape{}, nil, nil, runtime.NewNotRegisteredErrForKind(from.scheme.Name(), list)
	}
	mapping, err := from.mapper.RESTMapping(k.GroupKind(), k.Version)
	if err != nil {
		return shape{}, nil, nil, err
	}
	example, err := exampleOf(k, like, from.scheme)
	if err != nil {
		return shape{}, nil, nil, err
	}
	root := isRoot(mapping)
	return shape{k, root, s.of(k.GroupVersionKind, !root), newDeepCopier(reflect.TypeOf(example))}, example, mapping, nil
}

func newCollection(k kind, like runtime.Object, s settings, from sources, by beginner) (*collection, error) {
	shape, example, mapping, err := newShape(k, like, s, from)
	if err != nil {
		return nil, err
	}
	c := &collection{shape: shape, waits: map[string]waits{}, fields: map[string]fieldIndex{}, stop: func() {}, by: by}
	if by.reads() {
		c.caller, c.warnAbove = callerOf(), s.warnAbove
		if s.refuseAbove > 0 {
			c.limit = newLimit(s.refuseAbove)
		}
	}
	if s.failFast {
		c.refusals = newRefusals()
	}
	options := []informer.Option{informer.WithReflector(reflector.WithLogger(logger().WithValues("kind", k.String())))}
	if !c.root {
		options = append(options, informer.WithIndexes(store.ByNamespace[object]()))
	}
	newStore := s.packed.of(k, example)
	if c.packed = newStore != nil; c.packed {
		options = append(options, informer.WithStore(newStore))
	}
	var shared toolscache.SharedIndexInformer
	if namespace, config, ok := s.sole(c.configs); ok {
		source, err := from.of(k, example, mapping, namespace, config)
		if err != nil {
			return nil, err
		}
		one := informer.New(c.limit.counted(c.within(c.refusals.heardFrom(source, "")), ""), options...)
		c.copy, shared = one, clientgo.Informer(one)
		for namespace := range c.configs {
			c.waits[namespace] = one
		}
	} else {
		union := informer.NewUnion[object](options...)
		if err := c.addMembers(union, example, mapping, from); err != nil {
			return nil, err
		}
		c.copy, shared = union, clientgo.Union(union)
	}
	c.shared = newShared(shared, syncPeriod(c.configs))
	return c, nil
}

func (c *collection) addMembers(union *informer.Union[object], example object, mapping *meta.RESTMapping, from sources) error {
	for _, namespace := range slices.Sorted(maps.Keys(c.configs)) {
		source, err := from.of(c.kind, example, mapping, namespace, c.configs[namespace])
		if err != nil {
			return err
		}
		name := namespace
		if name == metav1.NamespaceAll {
			name = "all other namespaces"
		}
		source = c.limit.counted(c.refusals.heardFrom(source, name), name)
		if c.waits[namespace], err = union.Add(name, source); err != nil {
			return err
		}
	}
	return nil
}

// run keeps the collection until ctx ends.
func (c *collection) run(ctx context.Context) {
	var telling sync.WaitGroup
	defer telling.Wait()
	if c.by.reads() {
		telling.Go(func() { c.tell(ctx) })
	}
	c.shared.RunWithContext(ctx)
}

// config returns the configuration of a namespace; ok is false if the cache does not keep it.
func (s shape) config(namespace string) (config cache.Config, ok bool) {
	return ofNamespace(s.configs, namespace)
}

// ofNamespace returns the settings of a namespace, or those of all namespaces without settings of
// their own.
func ofNamespace[V any](all map[string]V, namespace string) (v V, ok bool) {
	if v, ok = all[namespace]; !ok {
		v, ok = all[metav1.NamespaceAll]
	}
	return v, ok
}

// fieldIndex is an index of [Cache.IndexField].
type fieldIndex struct {
	*store.Index[object, fieldValue]
	values func(object) []fieldValue
}

// fieldValue is a value of a field in one namespace, or in all of them.
type fieldValue struct{ namespace, value string }

func (c *collection) addIndex(field string, values client.IndexerFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.fields[field]; taken {
		return fmt.Errorf("controllerruntime: indexer conflict: %s has an index of field %q", c.kind, field)
	}
	of := func(obj object) (all []fieldValue) {
		for _, value := range values(obj) {
			all = append(all, fieldValue{metav1.NamespaceAll, value})
			if namespace := obj.GetNamespace(); namespace != "" {
				all = append(all, fieldValue{namespace, value})
			}
		}
		return all
	}
	index := fieldIndex{store.NewIndex("field "+field, of), of}
	c.copy.AddIndexes(index.Index)
	c.fields[field] = index
	return nil
}

// shared is a collection's informer in client-go's form, with a period of its own for handlers that
// ask for none.
type shared struct {
	toolscache.SharedIndexInformer
	period *time.Duration
}

func newShared(informer toolscache.SharedIndexInformer, period time.Duration) shared {
	return shared{informer, &period}
}

func (s shared) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithResyncPeriod(handler, *s.period)
}

func (s shared) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	if options.ResyncPeriod == nil {
		options.ResyncPeriod = s.period
	}
	return s.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
}

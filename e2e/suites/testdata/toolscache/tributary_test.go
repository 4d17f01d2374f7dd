package cache_test

import (
	"fmt"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/undelta"
)

func init() {
	cache.NewOurInformer, cache.NewOurIndexer, cache.NewOurUndelta = newInformer, newIndexer, newUndelta
}

// made says what was made, for the one who counts the tests that ran on ours. Examples own the
// standard output.
func made(what string) { fmt.Fprintln(os.Stderr, "tributary made:", what) }

// watched is an informer whose state the tests look up.
type watched struct {
	cache.SharedIndexInformer
}

func newInformer(lw cache.ListerWatcher, example runtime.Object, o cache.SharedIndexInformerOptions) cache.OurInformer {
	made("informer")
	return watched{clientgo.NewInformer(lw, example, o.ResyncPeriod, o.Indexers)}
}

func (w watched) status() informer.Status {
	return w.SharedIndexInformer.(interface{ Status() informer.Status }).Status()
}

// Started looks for a sign of Run: client-go's remembers it after the end too.
func (w watched) Started() bool { return w.status().Phase != reflector.Idle || w.IsStopped() }

func (w watched) Handlers() int { return len(w.status().Handlers) }

func (w watched) Registered(handle cache.ResourceEventHandlerRegistration) bool {
	for _, h := range w.status().Handlers {
		if h.Name == handle.HasSyncedChecker().Name() {
			return true
		}
	}
	return false
}

// boxed is a store of whatever the tests put into stores: what is no object of Kubernetes goes into
// a box that is one.
type boxed struct {
	cache.Indexer
	keyFunc cache.KeyFunc
}

type box struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	value any
}

func (b *box) DeepCopyObject() runtime.Object {
	return &box{value: b.value, ObjectMeta: *b.ObjectMeta.DeepCopy()}
}

func newIndexer(keyFunc cache.KeyFunc, indexers cache.Indexers) cache.Indexer {
	made("indexer")
	return newBoxed(store.NewIndexer[clientgo.Object](), keyFunc, indexers)
}

func newUndelta(push func([]any), keyFunc cache.KeyFunc) cache.Store {
	made("undelta store")
	return newBoxed(undelta.New(func(now store.Snapshot[clientgo.Object]) {
		all := make([]any, 0, now.Len())
		for _, obj := range now.All() {
			all = append(all, unpack(obj))
		}
		push(all)
	}), keyFunc, nil)
}

func newBoxed(from store.Snapshotter[clientgo.Object], keyFunc cache.KeyFunc, indexers cache.Indexers) cache.Indexer {
	b := &boxed{Indexer: clientgo.Indexer(from), keyFunc: keyFunc}
	if err := b.AddIndexers(indexers); err != nil {
		panic(err)
	}
	return b
}

func (b *boxed) pack(value any) (any, error) {
	key, err := b.keyFunc(value)
	if err != nil {
		return nil, cache.KeyError{Obj: value, Err: err}
	}
	if obj, ok := value.(clientgo.Object); ok && store.KeyOf(obj) == key {
		return obj, nil
	}
	packed := &box{value: value}
	namespace, name, found := strings.Cut(key, "/")
	if !found {
		namespace, name = "", key
	}
	packed.Namespace, packed.Name = namespace, name
	return packed, nil
}

func unpack(obj any) any {
	if packed, ok := obj.(*box); ok {
		return packed.value
	}
	return obj
}

func unpackAll(objs []any, err error) ([]any, error) {
	for i := range objs {
		objs[i] = unpack(objs[i])
	}
	return objs, err
}

func (b *boxed) write(value any, write func(any) error) error {
	obj, err := b.pack(value)
	if err != nil {
		return err
	}
	return write(obj)
}

func (b *boxed) Add(value any) error    { return b.write(value, b.Indexer.Add) }
func (b *boxed) Update(value any) error { return b.write(value, b.Indexer.Update) }
func (b *boxed) Delete(value any) error { return b.write(value, b.Indexer.Delete) }

func (b *boxed) Replace(values []any, resourceVersion string) error {
	var objs []any
	for _, value := range values {
		obj, err := b.pack(value)
		if err != nil {
			return err
		}
		objs = append(objs, obj)
	}
	return b.Indexer.Replace(objs, resourceVersion)
}

func (b *boxed) Get(value any) (any, bool, error) {
	key, err := b.keyFunc(value)
	if err != nil {
		return nil, false, cache.KeyError{Obj: value, Err: err}
	}
	return b.GetByKey(key)
}

func (b *boxed) GetByKey(key string) (any, bool, error) {
	obj, ok, err := b.Indexer.GetByKey(key)
	return unpack(obj), ok, err
}

func (b *boxed) List() []any {
	all, _ := unpackAll(b.Indexer.List(), nil)
	return all
}

func (b *boxed) AddIndexers(indexers cache.Indexers) error {
	wrapped := cache.Indexers{}
	for name, values := range indexers {
		wrapped[name] = func(obj any) ([]string, error) { return values(unpack(obj)) }
	}
	return b.Indexer.AddIndexers(wrapped)
}

func (b *boxed) Index(name string, value any) ([]any, error) {
	return unpackAll(b.Indexer.Index(name, value))
}

func (b *boxed) ByIndex(name, value string) ([]any, error) {
	return unpackAll(b.Indexer.ByIndex(name, value))
}

package clientgo

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/store"
)

// The untyped files are this one and shared.go: only [typed] turns an any into a T.

// Indexer adapts snapshots to a cache.Indexer, which is also a cache.Store: the input of generated
// listers. It always has the index cache.NamespaceIndex, which GetIndexers shows if it was added
// too. AddIndexers adds others at any time.
//
// If from is also a [store.Store], the indexer writes into it; otherwise writing is an error. For
// an informer that is written by hand, see the indexer of [Informer]. Returned objects are shared
// and read-only. It is safe for concurrent use. It panics if from is nil.
func Indexer[T store.Object](from store.Snapshotter[T]) cache.Indexer {
	if null.Is(from) {
		panic("clientgo: Indexer: the source is nil")
	}
	return newIndexer(from, func() (store.Store[T], error) {
		if to, ok := from.(store.Store[T]); ok {
			return to, nil
		}
		return nil, errReadOnly
	})
}

func newIndexer[T store.Object](from store.Snapshotter[T], open func() (store.Store[T], error)) *indexer[T] {
	x := &indexer[T]{from: from, open: open, indexes: map[string]*index[T]{}}
	x.indexes[cache.NamespaceIndex] = newIndex[T](cache.MetaNamespaceIndexFunc)
	x.indexes[cache.NamespaceIndex].implied = true
	return x
}

type indexer[T store.Object] struct {
	from store.Snapshotter[T]
	open func() (store.Store[T], error) // returns the store to write into

	mu      sync.RWMutex // guards indexes, not their content
	indexes map[string]*index[T]
}

func (x *indexer[T]) Add(obj any) error    { return x.write("add", obj, store.Store[T].Add) }
func (x *indexer[T]) Update(obj any) error { return x.write("update", obj, store.Store[T].Update) }
func (x *indexer[T]) Delete(obj any) error { return x.write("delete", obj, store.Store[T].Delete) }

func (x *indexer[T]) write(op string, obj any, write func(store.Store[T], T) error) error {
	to, err := x.open()
	if err != nil {
		return fmt.Errorf("clientgo: %s: %w", op, err)
	}
	object, err := typed[T](obj)
	if err != nil {
		return fmt.Errorf("clientgo: %s: %w", op, err)
	}
	if op != "delete" {
		x.mustIndex(object)
	}
	return write(to, object)
}

// mustIndex panics if an index function fails for an object, as a write into client-go's stores
// does, and in its words: tests of index functions look for them. Of an object that comes by
// itself, the queries tell.
func (x *indexer[T]) mustIndex(obj T) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for name, i := range x.indexes {
		if _, err := i.values(obj); err != nil {
			panic(fmt.Errorf("unable to calculate an index entry for key %q on index %q: %w", store.KeyOf(obj), name, err))
		}
	}
}

func (x *indexer[T]) Replace(list []any, resourceVersion string) error {
	to, err := x.open()
	if err != nil {
		return fmt.Errorf("clientgo: replace: %w", err)
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
	return to.Replace(items, store.At(resourceVersion))
}

// Bookmark cannot return an error. It does nothing on a read-only indexer.
func (x *indexer[T]) Bookmark(resourceVersion string) {
	to, err := x.open()
	if b, ok := to.(store.Bookmarker); ok && err == nil {
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
	for key := range now.Keys() {
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
	obj, ok := x.get(key)
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
			for key, entry := range i.found[value] {
				if !seen[key] {
					seen[key] = true
					found = append(found, i.at.Open(entry))
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
		for _, entry := range i.found[value] {
			found = append(found, i.at.Open(entry))
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
		if !i.implied {
			all[name] = i.values
		}
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
			return fmt.Errorf("clientgo: add index %q: indexer conflict: the informer has an index of that name, take another", name)
		}
	}
	for name, values := range more {
		x.indexes[name] = newIndex[T](values)
	}
	return nil
}

// get reads one object, which a store of packed bytes then keeps hot.
func (x *indexer[T]) get(key string) (T, bool) {
	now := x.from.Snapshot()
	if !now.AtRest() {
		return now.Get(key)
	}
	if from, ok := x.from.(interface{ Get(key string) (T, bool) }); ok {
		return from.Get(key)
	}
	return now.Get(key)
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

var errReadOnly = errors.New("only its informer writes the store: to fill a store by hand, as tests do, use a store.Indexer")

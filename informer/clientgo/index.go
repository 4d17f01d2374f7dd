package clientgo

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/store"
)

// index is updated at each query by the difference between the snapshot of its last query and the
// newest. It has entries as the store keeps them, so that objects at rest stay so.
type index[T store.Object] struct {
	values  cache.IndexFunc
	implied bool // it was not asked for: GetIndexers leaves it out
	meta    bool // values reads metadata alone

	mu    sync.RWMutex
	at    store.Snapshot[T]
	found map[string]map[string]store.Entry // of at, by value, then by key
}

func newIndex[T store.Object](values cache.IndexFunc) *index[T] {
	byNamespace := reflect.ValueOf(cache.MetaNamespaceIndexFunc).Pointer()
	return &index[T]{values: values, meta: reflect.ValueOf(values).Pointer() == byNamespace}
}

func (i *index[T]) query(from store.Snapshotter[T], read func(*index[T]) error) error {
	i.mu.RLock()
	if i.at == from.Snapshot() {
		defer i.mu.RUnlock()
		return read(i)
	}
	i.mu.RUnlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	// Take the snapshot under the lock, so that the index never goes back in time.
	if err := i.catchUpLocked(from.Snapshot()); err != nil {
		i.at, i.found = store.Snapshot[T]{}, nil // half a difference is useless
		return err
	}
	return read(i)
}

func (i *index[T]) catchUpLocked(now store.Snapshot[T]) error {
	if i.found == nil {
		i.found = map[string]map[string]store.Entry{}
	}
	for c := range store.Diff(i.at.Entries(), now.Entries()) {
		if !c.Added() {
			if err := i.edit(c.Key, i.at, c.Old, func(bucket map[string]store.Entry) { delete(bucket, c.Key) }); err != nil {
				return err
			}
		}
		if !c.Deleted() {
			if err := i.edit(c.Key, now, c.New, func(bucket map[string]store.Entry) { bucket[c.Key] = c.New }); err != nil {
				return err
			}
		}
	}
	i.at = now
	return nil
}

func (i *index[T]) edit(key string, of store.Snapshot[T], entry store.Entry, edit func(bucket map[string]store.Entry)) error {
	var obj any = entry
	if !i.meta {
		obj = of.Open(entry)
	}
	values, err := i.values(obj)
	if err != nil {
		return fmt.Errorf("the index function fails at %s: %w", key, err)
	}
	for _, value := range values {
		bucket := i.found[value]
		if bucket == nil {
			bucket = map[string]store.Entry{}
			i.found[value] = bucket
		}
		if edit(bucket); len(bucket) == 0 {
			delete(i.found, value)
		}
	}
	return nil
}

package collection

import (
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// Storage is where the objects of a collection are kept. [New] has one in memory, and package etcd
// one in etcd. The rules of writes are the collection's; a storage makes each write atomic and
// gives it a resource version. It is safe for concurrent use.
type Storage[T store.Object] interface {
	// Read returns the newest state of the object under a key of store.Key: no write that has
	// returned is missing from it.
	Read(key string) (obj T, found bool, err error)

	// Write makes one write of the object under a key. Decide gets its newest state, which is
	// read-only, and decides on it. It has no side effects and may be called again, if
	// the object has changed meanwhile; its error is Write's. Write returns the object of the last
	// decision, under the version of the write if there was one. The storage owns the object that
	// it has written.
	Write(key string, decide func(stored T, found bool) (Decision[T], error)) (T, error)
}

// Decision is the outcome of a write for an object.
type Decision[T store.Object] struct {
	Op     Op
	Object T

	wanted T // of a Remove by an update: the state that its writer has asked for
}

// Op is the operation of a [Decision].
type Op int

// The operations.
const (
	// Keep writes nothing.
	Keep Op = iota
	// Put stores the object, whether there was one or not.
	Put
	// Remove takes the object away; Object is its last state.
	Remove
)

// memory keeps objects in the cache itself: its content is the truth.
type memory[T store.Object] struct {
	cache    *watchcache.Cache[T]
	revision *watchcache.Revision
}

func (m memory[T]) Read(key string) (T, bool, error) {
	obj, found := m.cache.Snapshot().Get(key)
	return obj, found, nil
}

func (m memory[T]) Write(key string, decide func(stored T, found bool) (Decision[T], error)) (result T, err error) {
	err = m.revision.Write(func(version string) (bool, error) {
		d, err := decide(m.cache.Snapshot().Get(key))
		if err != nil {
			return false, err
		}
		if result = d.Object; d.Op == Keep {
			return false, nil
		}
		result.SetResourceVersion(version)
		if d.Op == Remove {
			return true, m.cache.Delete(result)
		}
		return true, m.cache.Add(result)
	})
	return result, err
}

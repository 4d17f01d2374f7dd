// Package weakly has values that all who know a key share, for as long as one of them holds it.
package weakly

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"weak"
)

// Map has a value for each key that is in use. The zero value is ready, and lasts as long as the
// process. It is safe for concurrent use.
type Map[K comparable, V any] struct {
	mu sync.Mutex // guards of
	of map[K]weak.Pointer[V]
}

// Get returns the value of key, the same one as long as a caller holds it. If there is none, create
// makes it; another caller may then be first, and what create made is dropped. A weak pointer is
// read without the lock: that may take as long as a garbage collection.
func (m *Map[K, V]) Get(key K, create func() *V) *V {
	for {
		m.mu.Lock()
		last := m.of[key]
		m.mu.Unlock()
		if v := last.Value(); v != nil {
			return v
		}
		v := create()
		if m.swap(key, last, v) {
			return v
		}
	}
}

// swap puts v in the place of last, if that is still there.
func (m *Map[K, V]) swap(key K, last weak.Pointer[V], v *V) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[key] != last {
		return false
	}
	if m.of == nil {
		m.of = map[K]weak.Pointer[V]{}
	}
	of := weak.Make(v)
	m.of[key] = of
	runtime.AddCleanup(v, func(of weak.Pointer[V]) { m.forget(key, of) }, of)
	return true
}

// forget drops the entry of a value that nothing holds any more, unless key has a new one.
func (m *Map[K, V]) forget(key K, of weak.Pointer[V]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[key] == of {
		delete(m.of, key)
	}
}

// Keys are the keys in use, in no order.
func (m *Map[K, V]) Keys() []K {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.of))
}

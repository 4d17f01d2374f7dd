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
// makes it.
func (m *Map[K, V]) Get(key K, create func() *V) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.of[key].Value(); v != nil {
		return v
	}
	v := create()
	if m.of == nil {
		m.of = map[K]weak.Pointer[V]{}
	}
	m.of[key] = weak.Make(v)
	runtime.AddCleanup(v, m.forget, key)
	return v
}

// forget drops the entry of a value that nothing holds any more, unless key has a new one.
func (m *Map[K, V]) forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of[key].Value() == nil {
		delete(m.of, key)
	}
}

// Keys are the keys in use, in no order.
func (m *Map[K, V]) Keys() []K {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.of))
}

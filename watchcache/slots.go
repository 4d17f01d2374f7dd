package watchcache

import (
	"sync"
	"sync/atomic"
)

// slots are what readers of a listing share: of each kind, a value for the object at the same
// index; nil while none is kept.
type slots[V any] struct {
	mu    sync.RWMutex // guards the map, not the values
	kinds map[any][]atomic.Pointer[V]
}

// of are the slots of one kind, for a number of objects.
func (s *slots[V]) of(kind any, objects int) []atomic.Pointer[V] {
	s.mu.RLock()
	values := s.kinds[kind]
	s.mu.RUnlock()
	if values != nil {
		return values
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds[kind] == nil {
		s.setLocked(kind, make([]atomic.Pointer[V], objects))
	}
	return s.kinds[kind]
}

func (s *slots[V]) setLocked(kind any, values []atomic.Pointer[V]) {
	if s.kinds == nil {
		s.kinds = map[any][]atomic.Pointer[V]{}
	}
	s.kinds[kind] = values
}

// follow takes over the values of the parts that are the same. takes tells for how many objects a
// value is, and the bytes that it takes of the room. Nobody else has s yet.
func (s *slots[V]) follow(last *slots[V], same []part, objects int, room *atomic.Int64, takes func(*V) (length int, bytes int64)) {
	last.mu.RLock()
	defer last.mu.RUnlock()
	for kind, before := range last.kinds {
		values := make([]atomic.Pointer[V], objects)
		for _, p := range same {
			for i := p.from; i < p.to; i++ {
				value := before[i].Load()
				if value == nil {
					continue
				}
				if length, bytes := takes(value); i+length <= p.to {
					values[p.into+i-p.from].Store(value)
					room.Add(-bytes)
				}
			}
		}
		s.setLocked(kind, values)
	}
}

// keep puts a value in the place of another, if it finds room for its bytes beyond those of the
// other. If not, the room is full from then on: what would be made for it were made in vain.
func keep[V any](at *atomic.Pointer[V], known, next *V, room *atomic.Int64, bytes int64) (kept bool) {
	if room.Load() < bytes {
		room.Store(0)
		return false
	}
	if at.CompareAndSwap(known, next) {
		room.Add(-bytes)
	}
	return true
}

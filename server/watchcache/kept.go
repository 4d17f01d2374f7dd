package watchcache

import (
	"sync"
	"sync/atomic"
)

// kept holds the values that the readers of a listing share, within a bound. Each kind has a place
// for each object: for a value made of the object, or of the run that the object begins.
type kept struct {
	room   atomic.Int64 // how many bytes may still be kept
	making sync.Mutex   // held while something is made of a run

	mu    sync.RWMutex // guards the map, not the values
	kinds map[any][]place
}

// place is empty while nothing is kept there.
type place = atomic.Pointer[made]

// made is a value made of a number of objects, with the bytes that it takes.
type made struct {
	value   any
	bytes   int64
	objects int
}

// of are the places of one kind, for a number of objects.
func (k *kept) of(kind any, objects int) []place {
	k.mu.RLock()
	places := k.kinds[kind]
	k.mu.RUnlock()
	if places != nil {
		return places
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kinds[kind] == nil {
		k.setLocked(kind, make([]place, objects))
	}
	return k.kinds[kind]
}

func (k *kept) setLocked(kind any, places []place) {
	if k.kinds == nil {
		k.kinds = map[any][]place{}
	}
	k.kinds[kind] = places
}

// follow takes over the values of the parts that are the same. No reader has k yet.
func (k *kept) follow(last *kept, same []part, objects int) {
	last.mu.RLock()
	defer last.mu.RUnlock()
	for kind, before := range last.kinds {
		places := make([]place, objects)
		for _, p := range same {
			for i := p.from; i < p.to; i++ {
				if m := before[i].Load(); m != nil && i+m.objects <= p.to {
					places[p.into+i-p.from].Store(m)
					k.room.Add(-m.bytes)
				}
			}
		}
		k.setLocked(kind, places)
	}
}

// keep puts next in the place of known, if it finds room. If not, the room is full from then on.
// The first values stay: if the newest did, lists beyond the bound would take up to 2.7 times.
func (k *kept) keep(at *place, known, next *made) (ok bool) {
	bytes := next.bytes
	if known != nil {
		bytes -= known.bytes
	}
	if k.room.Load() < bytes {
		k.room.Store(0)
		return false
	}
	if at.CompareAndSwap(known, next) {
		k.room.Add(-bytes)
	}
	return true
}

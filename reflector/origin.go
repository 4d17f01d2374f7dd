package reflector

import (
	"sync"
	"time"
)

// ownProbe is how seldom a cache may rely on the probes of others: only a probe of its own compares
// an object of its selection.
const ownProbe = 15 * time.Minute

// origins has the copies that follow one resource over one client, by that. Their versions are of
// one history (KEP-5504), so that a version which one of them has asked for proves them all.
var origins = struct {
	mu  sync.Mutex
	all map[any]*origin
}{all: map[any]*origin{}}

// origin is what copies of one resource over one client share.
type origin struct {
	key  any
	mu   sync.Mutex // guards the fields below
	uses int        // guarded by the lock of origins

	newest  claim     // of the last probe
	doubted time.Time // when one of the copies was contradicted
}

// shareProbes joins the copies of a source's resource. Without an identity it is alone.
func shareProbes(source any) *origin {
	o := &origin{}
	if named, ok := source.(interface{ Origin() any }); ok {
		o.key = named.Origin()
	}
	if o.key == nil {
		return o
	}
	origins.mu.Lock()
	defer origins.mu.Unlock()
	if known := origins.all[o.key]; known != nil {
		o = known
	}
	o.uses++
	origins.all[o.key] = o
	return o
}

// leave forgets an origin with its last copy.
func (o *origin) leave() {
	origins.mu.Lock()
	defer origins.mu.Unlock()
	if o.uses--; o.key != nil && o.uses == 0 {
		delete(origins.all, o.key)
	}
}

// told has a version that was asked for after since.
func (o *origin) told(since time.Time) (c claim, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest, o.newest.asked.After(since)
}

// contradicted reports whether the server has contradicted a cache after since.
func (o *origin) contradicted(since time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.doubted.After(since)
}

// tell shares the answer to a probe, or the doubt that it raised.
func (o *origin) tell(c claim, contradicted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case contradicted:
		o.doubted = c.asked
	case c.asked.After(o.newest.asked):
		o.newest = c
	}
}

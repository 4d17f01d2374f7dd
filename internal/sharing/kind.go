package sharing

import (
	"math"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tributary-go/tributary/internal/weakly"
)

// Kind names the collections that share memory with each other.
type Kind struct {
	Type     reflect.Type // of the objects
	Resource string       // if the type does not tell it: with group and version
	Scope    any          // comparable: only collections of an equal one share
	// Drop leaves metadata.managedFields out of each object; their bytes are passed over unread. An
	// object that is decoded plainly may still have them.
	Drop bool
}

// kinds are the kinds that some collection of the process has. The last memo of a kind takes it
// along.
var kinds weakly.Map[Kind, common]

// Of makes the memo of one more collection of a kind. It fails if the process may not use GCM under
// nonces of its own (GODEBUG=fips140=only).
func Of(of Kind) (*Memo, error) {
	hash, err := ProcessHash()
	if err != nil {
		return nil, err
	}
	k := kinds.Get(of, func() *common {
		limits := defaultLimits
		limits.early = FirstBytes
		k := newCommon(limits, hash)
		k.drop = of.Drop
		return k
	})
	return k.join(), nil
}

// common is what the memos of one kind of objects have together: how its types are decoded, the
// values of their fields, and decoders that know their habits. So the tenth collection costs
// nothing but its own objects.
//
// It forgets by generations, counted in objects and not in time: an entry lives on while an object
// of this generation or the last one has used it. A generation is twice as long as the longest
// lists of all collections, and ends when half of them is gone. So the values of a living
// collection outlast a quiet day, and those of deleted objects go as others come, or with the last
// of them.
//
// Decoders of many collections work at once. None of them waits for another one, but for a moment
// when a generation ends.
type common struct {
	limits limits
	hash   *Hash
	drop   bool // managedFields

	mu      sync.Mutex // of the next three
	plans   map[reflect.Type]*plan
	structs map[reflect.Type]*jsonPlan
	sites   []*site

	tree *site // of the values in unstructured objects: they mean the same in every place
	met  filter

	idle  []atomic.Pointer[decoder] // one for each core, but few
	spare sync.Pool                 // of more decoders, until the garbage collector takes them
	// decoding is the number of decoders in use. It is below zero while a generation ends alone.
	decoding atomic.Int64
	aging    sync.Mutex // held by the one that ends a generation
	late     int        // objects since the generation was full; guarded by aging
	objects  atomic.Int64
	bytes    atomic.Int64 // kept in this generation: on the wire, and of the entries
	entries  atomic.Int64
	held     atomic.Int64
	// doubts is the number of calls of Doubt. A value from before the last one is not handed out.
	doubts atomic.Uint32

	sizing  sync.Mutex // of the next two
	all     size
	full    int          // the most bytes of all since a generation was ended for what is gone
	longest atomic.Int64 // objects of a generation
	most    atomic.Int64 // bytes of a generation
	recent  atomic.Int64 // bytes of the recent values of a decoder
	// early is how many bytes of objects are decoded plainly yet: what a kind remembers costs more
	// than a few objects can share.
	early atomic.Int64
}

// size is that of one collection, or of all.
type size struct{ objects, bytes int }

func newCommon(l limits, hash *Hash) *common {
	k := &common{limits: l, hash: hash, idle: make([]atomic.Pointer[decoder], min(runtime.GOMAXPROCS(0), maxIdle)), plans: map[reflect.Type]*plan{}, structs: map[reflect.Type]*jsonPlan{}}
	k.early.Store(int64(l.early))
	k.tree = k.newSite(reflect.TypeFor[any]())
	k.resize(&size{}, size{})
	return k
}

// join makes a memo, whose collection counts until the memo is freed.
func (k *common) join() *Memo {
	m := &Memo{common: k, size: &size{}}
	runtime.AddCleanup(m, func(s *size) { k.resize(s, size{}) }, m.size)
	return m
}

// resize gives a collection another size, and fits the bounds to all collections.
func (k *common) resize(s *size, to size) {
	k.sizing.Lock()
	defer k.sizing.Unlock()
	k.all.objects += to.objects - s.objects
	k.all.bytes += to.bytes - s.bytes
	*s = to
	switch {
	case k.all.bytes > k.full:
		k.full = k.all.bytes
	case k.full > fewBytes && k.all.bytes < k.full/2:
		k.full = k.all.bytes
		k.objects.Store(math.MaxInt64 / 2) // the next object ends the generation
	}
	k.longest.Store(int64(max(k.limits.objects, 2*k.all.objects)))
	k.most.Store(int64(k.limits.generation(k.all.bytes)))
	k.recent.Store(int64(k.limits.recents(k.all.bytes)))
	k.met.grow(k.all.bytes)
}

// drops reports whether a field is passed over.
func (k *common) drops(of reflect.Type, name string) bool {
	return k.drop && of == objectMetaType && name == "ManagedFields"
}

// exclusive is more than any number of decoders.
const exclusive = 1 << 32

// take begins an object, and a generation when the last one is full. Last is where the collection's
// last decoder may be: it knows the neighbours of the object.
func (k *common) take(last int) *decoder {
	for k.decoding.Add(1) < 0 { // a generation ends
		k.decoding.Add(-1)
		k.aging.Lock()
		//lint:ignore SA2001 to wait for its end
		k.aging.Unlock()
	}
	if k.objects.Add(1) > k.longest.Load() || k.bytes.Load() > k.most.Load() {
		k.age()
	}
	d := k.idleDecoder(last)
	if d == nil {
		d = newDecoder(k)
	}
	d.recentMost = int(k.recent.Load())
	if doubts := k.doubts.Load(); d.since != doubts {
		d.since = doubts
		d.forgetPrevious()
	}
	return d
}

// idleDecoder returns nil if all decoders are in use.
func (k *common) idleDecoder(last int) *decoder {
	for i := range k.idle {
		at := &k.idle[(last+i)%len(k.idle)]
		if at.Load() == nil {
			continue
		}
		if d := at.Swap(nil); d != nil {
			return d
		}
	}
	d, _ := k.spare.Get().(*decoder)
	return d
}

// giveBack ends an object, and returns where the decoder is from now on. A decoder that panicked
// never comes back.
func (d *decoder) giveBack() (at int) {
	k := d.common
	defer k.decoding.Add(-1)
	at = d.last
	for range k.idle {
		d.last = at // until it is idle
		if k.idle[at].CompareAndSwap(nil, d) {
			return at
		}
		at = (at + 1) % len(k.idle)
	}
	k.spare.Put(d)
	return at
}

// age begins a new generation. It waits a little for a moment in which no other goroutine decodes:
// then the space of the generation that is forgotten serves again.
func (k *common) age() {
	if !k.aging.TryLock() {
		return // another goroutine does it
	}
	defer k.aging.Unlock()
	alone := k.decoding.CompareAndSwap(1, 1-exclusive)
	if alone {
		defer k.decoding.Add(exclusive)
	}
	if k.late++; k.late <= maxLate && !alone {
		return
	}
	k.late = 0
	k.objects.Store(0)
	k.bytes.Store(0)
	k.mu.Lock()
	sites := k.sites
	k.mu.Unlock()
	for _, s := range sites {
		s.age(k, alone)
	}
}

// forget gives up all values, unless some collection keeps its objects.
func (k *common) forget() {
	k.sizing.Lock()
	kept := k.all.bytes > 0
	k.sizing.Unlock()
	if kept {
		return
	}
	k.mu.Lock()
	sites := k.sites
	k.mu.Unlock()
	for _, s := range sites {
		s.forget(k)
	}
	for i := range k.idle {
		k.idle[i].Store(nil)
	}
}

// kept and forgot count entries and the bytes of wire that they stand for.
func (k *common) kept(size int) {
	k.bytes.Add(int64(size + entryBytes))
	k.entries.Add(1)
	k.held.Add(int64(size))
}

func (k *common) forgot(entries, size int) {
	k.entries.Add(-int64(entries))
	k.held.Add(-int64(size))
}

package sharing

import (
	"reflect"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Memo remembers decoded values. One memo serves any number of types and is safe for concurrent
// use: each object is decoded by a [decoder] of its own. A look-up takes no lock, and the values of
// each field are kept under a lock of their own.
//
// It forgets by generations, counted in objects and not in time: an entry lives on while an
// object of this generation or the last one has used it. A generation is twice as long as the
// longest list. So the values of a living collection outlast a quiet day, and those of deleted
// objects go as others come.
type Memo struct {
	limits limits
	hash   *Hash
	drop   bool // managedFields

	mu       sync.Mutex // of the fields up to doubts
	plans    map[reflect.Type]*plan
	structs  map[reflect.Type]*jsonPlan
	sites    []*site
	idle     []*decoder // the one used last comes last
	decoding int        // decoders in use
	objects  int        // decoded in this generation
	longest  int        // objects of the longest list lately
	largest  int        // and its bytes on the wire
	arrived  int        // bytes decoded before the first list ended
	stats    Stats      // but for Entries, Held and Changing

	// doubts is the number of calls of Doubt. A value from before the last one is not handed out.
	doubts atomic.Uint32

	tree  *site // of the values in unstructured objects: their meaning does not depend on their place
	met   filter
	noted changes

	bytes   atomic.Int64 // kept in this generation: on the wire, and of the entries
	entries atomic.Int64
	held    atomic.Int64
}

// Stats is what a [Memo] holds, and how often it was useful.
type Stats struct {
	Same          uint64 // fields that were equal in the previous object, or in the last state
	Lookups, Hits uint64 // others looked up, and found
	Bytes, Shared uint64 // of all objects on the wire, and those that were not decoded again
	Entries       int    // values held
	Held          int    // bytes of wire that they stand for
	Changing      int    // objects whose last change is noted
}

type limits struct {
	objects int // of a generation, at least
	bytes   int // of a generation, at least: an eighth of the collection, if that is more
	most    int // bytes of a generation, whatever the list
	follow  int // bytes of an object whose last state is noted, at least
	share   int // percent of an object that must be found for the object to count as found
}

// defaultLimits: an object below 1 KiB is decoded sooner than followed. The pods of one node leave
// less than 256 KiB. 50,000 pods leave 128 MiB if each ReplicaSet has three of them.
var defaultLimits = limits{objects: 4096, bytes: 256 << 10, most: 128 << 20, follow: 1 << 10, share: 12}

// maxArrived is the most bytes of a generation while the size of the collection is not known.
const maxArrived = 8 << 20

// maxPart is the most bytes of wire that a remembered value stands for. Larger parts belong to
// one object, such as the data of a ConfigMap, or have smaller parts that are found themselves.
const maxPart = 4 << 10

// entryBytes is the size of an entry beside its value.
const entryBytes = 64

// New makes an empty memo. It fails if the process may not use GCM under nonces of its own
// (GODEBUG=fips140=only).
func New() (*Memo, error) {
	hash, err := NewHash()
	if err != nil {
		return nil, err
	}
	m := &Memo{
		limits: defaultLimits, hash: hash,
		plans: map[reflect.Type]*plan{}, structs: map[reflect.Type]*jsonPlan{},
	}
	m.tree = m.newSite(reflect.TypeFor[any]())
	return m, nil
}

// DropManagedFields leaves metadata.managedFields out of each object; their bytes are passed over
// unread. An object that is decoded plainly may still have them. Call it before the first object
// is decoded.
func (m *Memo) DropManagedFields() { m.drop = true }

// drops reports whether a field is passed over.
func (m *Memo) drops(of reflect.Type, name string) bool {
	return m.drop && of == objectMetaType && name == "ManagedFields"
}

var objectMetaType = reflect.TypeFor[metav1.ObjectMeta]()

// Stats returns a copy of the counters.
func (m *Memo) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := m.stats
	stats.Entries, stats.Held = int(m.entries.Load()), int(m.held.Load())
	stats.Changing = m.noted.len()
	return stats
}

// Listed tells the memo how many objects a list had, and how many bytes. It sizes its generations
// by them.
func (m *Memo) Listed(objects, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.longest = max(objects, m.longest-m.longest/8)
	m.largest = max(bytes, m.largest-m.largest/8)
	m.arrived = 0
}

// beginLocked counts an object that is about to be decoded, and ends the generation when it is
// full.
func (m *Memo) beginLocked(size int) {
	m.objects++
	m.stats.Bytes += uint64(size)
	if m.largest == 0 {
		m.arrived = min(m.arrived+size, 8*maxArrived)
	}
	m.met.grow(m.sizeLocked())
	if m.objects > max(m.limits.objects, 2*m.longest) || m.bytes.Load() > m.mostLocked() {
		m.ageLocked()
	}
}

// mostLocked is the most bytes of a generation.
func (m *Memo) mostLocked() int64 {
	return int64(min(max(m.limits.bytes, m.sizeLocked()/8), m.limits.most))
}

// sizeLocked is the bytes of the collection on the wire, as far as they are known.
func (m *Memo) sizeLocked() int { return max(m.largest, m.arrived) }

// ageLocked begins a new generation.
func (m *Memo) ageLocked() {
	m.objects = 0
	m.bytes.Store(0)
	for _, s := range m.sites {
		s.age(m, m.decoding == 0)
	}
}

// kept and forgot count entries and the bytes of wire that they stand for.
func (m *Memo) kept(size int) {
	m.bytes.Add(int64(size + entryBytes))
	m.entries.Add(1)
	m.held.Add(int64(size))
}

func (m *Memo) forgot(entries, size int) {
	m.entries.Add(-int64(entries))
	m.held.Add(-int64(size))
}

// key stands for bytes: the bytes themselves and their number if they are few, else their hash.
type key [16]byte

func (m *decoder) keyOf(b []byte) (k key) {
	if len(b) < len(k) {
		copy(k[:], b)
		k[len(k)-1] = byte(len(b))
		return k
	}
	return key(m.hash.seal(m.sum[:0], b))
}

// habit is how the look-ups in one place went lately. A place that finds too little rests for
// skip objects, and is tried again.
type habit struct {
	tries, hits, skip, pause int32
	good                     bool // most look-ups found a value lately
}

const (
	trial     = 64      // look-ups before a place is judged
	worth     = 4       // it must find one in so many
	firstRest = 1 << 11 // how long it rests at first; twice as long each time
	lastRest  = 1 << 17
)

// wanted reports whether a look-up is worth its price.
func (h *habit) wanted() bool {
	if h.skip > 0 {
		h.skip--
		return false
	}
	return true
}

// same counts a part that is equal in the previous object. It speaks for the place like a look-up
// that finds: in another order of objects it would have been looked up.
func (h *habit) same() {
	if h.skip == 0 {
		h.tries++
		h.hits++
	}
}

// looked counts a look-up. Now and then it decides whether to go on, and how long to rest
// otherwise.
func (h *habit) looked(found bool) {
	h.tries++
	if found {
		h.hits++
	}
	if h.tries >= trial {
		h.judge()
	}
}

func (h *habit) judge() {
	h.good = h.hits >= h.tries/2
	if h.hits >= h.tries/worth {
		h.pause = 0
	} else {
		h.pause = min(max(firstRest, 2*h.pause), lastRest)
		h.skip = h.pause
	}
	h.tries, h.hits = 0, 0
}

package sharing

import (
	"reflect"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/wire"
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
	changed  changes
	stats    Stats // but for Entries, Held and Changing

	objects int // decoded in this generation
	late    int // of them, since it was full
	longest int // objects of the longest list lately
	largest int // and its bytes on the wire
	arrived int // bytes decoded before the first list ended
	most    int // bytes of a generation
	recent  int // bytes of the recent values of a decoder

	// doubts is the number of calls of Doubt. A value from before the last one is not handed out.
	doubts atomic.Uint32

	tree *site // of the values in unstructured objects: they mean the same in every place
	met  filter

	bytes   atomic.Int64 // kept in this generation: on the wire, and of the entries
	entries atomic.Int64
	held    atomic.Int64
}

// Stats tells the size of a [Memo], and how often it was useful.
type Stats struct {
	Same          uint64 // fields that were equal in the previous object, or in the last state
	Lookups, Hits uint64 // others looked up, and found
	Bytes, Shared uint64 // of all objects on the wire, and those that were not decoded again
	Entries       int    // values held
	Held          int    // bytes of wire that they stand for
	Changing      int    // objects whose last change is noted
}

// New makes an empty memo. It fails if the process may not use GCM under nonces of its own
// (GODEBUG=fips140=only).
func New() (*Memo, error) { return newMemo(defaultLimits) }

func newMemo(l limits) (*Memo, error) {
	hash, err := NewHash()
	if err != nil {
		return nil, err
	}
	m := &Memo{limits: l, hash: hash, plans: map[reflect.Type]*plan{}, structs: map[reflect.Type]*jsonPlan{}}
	m.tree = m.newSite(reflect.TypeFor[any]())
	m.fitLocked()
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
	stats.Changing = len(m.changed.young) + len(m.changed.old)
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
	m.fitLocked()
}

// fitLocked fits the bounds to the collection, as far as its size is known.
func (m *Memo) fitLocked() {
	size := max(m.largest, m.arrived)
	m.most = min(max(m.limits.bytes, size/8), m.limits.most)
	m.recent = min(max(minRecentBytes, size/recentPart), maxRecentBytes)
	m.met.grow(size)
}

// takeLocked begins an object, and a generation when the last one is full.
func (m *Memo) takeLocked(size int) *decoder {
	m.objects++
	m.stats.Bytes += uint64(size)
	if m.largest == 0 {
		m.arrived = min(m.arrived+size, 8*maxArrived)
		m.fitLocked()
	}
	if m.objects > max(m.limits.objects, 2*m.longest) || m.bytes.Load() > int64(m.most) {
		m.ageLocked()
	}
	m.decoding++
	last := len(m.idle) - 1
	if last < 0 {
		return newDecoder(m)
	}
	d := m.idle[last]
	d.recentMost = m.recent
	m.idle = m.idle[:last]
	if doubts := m.doubts.Load(); d.since != doubts {
		d.since = doubts
		d.forgetPrevious()
	}
	return d
}

// ageLocked begins a new generation. It waits a little for a moment in which no other goroutine
// decodes: then the space of the generation that is forgotten serves again.
func (m *Memo) ageLocked() {
	alone := m.decoding == 0
	if m.late++; m.late <= maxLate && !alone {
		return
	}
	m.objects, m.late = 0, 0
	m.bytes.Store(0)
	for _, s := range m.sites {
		s.age(m, alone)
	}
}

func (m *Memo) take(size int) *decoder {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.takeLocked(size)
}

// giveBack ends an object. A decoder that panicked never comes back.
func (d *decoder) giveBack() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.decoding--
	d.stats.Same += d.counts.same
	d.stats.Shared += d.counts.shared
	d.stats.Lookups += d.counts.lookups
	d.stats.Hits += d.counts.hits
	d.counts = counts{}
	if len(d.idle) < maxIdle {
		d.idle = append(d.idle, d)
	}
}

// Doubt makes every value be compared with its bytes before it is handed out again. That costs one
// decoding for each value that comes again.
//
// Values are read-only, and readers that write into them against the rule do exist. So a reader
// that lists again doubts them: known bytes are decoded once more, and the results are compared. A
// whole value stays shared with the objects that have it. A value that was written into is
// replaced, so that no object that is decoded after the next list has the write.
//
// The digests of held objects (listwatch) cannot do this. They choose held objects to decode though
// their bytes are known, and Doubt makes that decoding right. Most values belong to objects that
// the digests do not choose. Without Doubt, TestAWriteIntoAHeldObjectIsHealed and
// TestNoWriteOutlivesARelist fail.
func (m *Memo) Doubt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doubts.Add(1)
	m.changed.clear()
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

// decoder is the state of one goroutine that decodes: the previous object, the habits of its
// places, and room to work in. A goroutine that decodes alone always gets the same one.
type decoder struct {
	*Memo
	since    uint32                  // the doubts after which before was decoded
	previous map[any]*previousObject // by plan
	far      map[*site]*habit
	roots    map[reflect.Type]*root
	nodes    []*node // of all roots

	recentBytes int // that the nodes keep
	recentMost  int
	changes     int
	notes       notes
	doc         wire.Document
	sum         []byte // of hash
	names       map[string]string

	nameBytes int
	naming    habit // judged whenever names are full

	root      treeSite
	treeSites int
	treeValue any           // that is looked up or kept
	treeRef   reflect.Value // of treeValue

	counts counts
}

// counts are added to the statistics after each object.
type counts struct{ same, shared, lookups, hits uint64 }

func newDecoder(m *Memo) *decoder {
	d := &decoder{
		Memo: m, since: m.doubts.Load(), recentMost: m.recent, sum: make([]byte, 0, len(Digest{})),
		previous: map[any]*previousObject{}, far: map[*site]*habit{}, roots: map[reflect.Type]*root{},
	}
	d.treeRef = reflect.ValueOf(&d.treeValue).Elem()
	return d
}

// same counts a part that is equal in the previous object, or in the last state.
func (d *decoder) same(size int) {
	d.counts.same++
	d.counts.shared += uint64(size)
}

// habit is how the look-ups in one place went lately. A place that finds too little rests for
// skip objects, and is tried again.
type habit struct {
	tries, hits, skip, pause int32
	good                     bool // most look-ups found a value lately
}

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

package sharing

import (
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Memo decodes the objects of one collection, and remembers values together with the memos of all
// other collections of its [Kind]. It is safe for concurrent use: each object is decoded by a
// [decoder] of its own. A look-up takes no lock, and the values of each field are kept under a lock
// of their own.
type Memo struct {
	*common
	size *size // that the kind knows; under mu
	// passing: the collection keeps none of its objects, but what a program makes of them.
	passing bool

	mu      sync.Mutex // of the next four
	stats   Stats      // but for Entries and Held
	listed  size       // the longest list lately
	arrived int        // bytes decoded before the first list ended
	last    int        // the index of the last decoder among idle ones
}

// Stats tells the size of a [Memo], and how often it was useful.
type Stats struct {
	Same          uint64 // fields that were equal in the previous object, or in the last state
	Lookups, Hits uint64 // others looked up, and found
	Bytes, Shared uint64 // of all objects on the wire, and those that were not decoded again
	Entries       int    // values held, of all collections of the kind
	Held          int    // bytes of wire that they stand for
}

// New makes an empty memo that shares with no other. It fails as [Of] does.
func New() (*Memo, error) { return newMemo(defaultLimits) }

// Passing is a memo of the same kind, whose collection passes.
func (m *Memo) Passing() *Memo {
	other := m.join()
	other.Pass()
	return other
}

// Pass tells the memo that its collection keeps none of its objects, but what a program makes of
// them. The memo helps to decode a list, and is forgotten with its end: what the objects have in
// common would else be all that stays of them.
func (m *Memo) Pass() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passing, m.listed = true, size{}
	m.resize(m.size, m.listed)
}

func newMemo(l limits) (*Memo, error) {
	hash, err := ProcessHash()
	if err != nil {
		return nil, err
	}
	return newCommon(l, hash).join(), nil
}

var objectMetaType = reflect.TypeFor[metav1.ObjectMeta]()

// Stats returns a copy of the counters.
func (m *Memo) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	stats := m.stats
	stats.Entries, stats.Held = int(m.entries.Load()), int(m.held.Load())
	return stats
}

// Listed tells the memo how many objects a list had, and how many bytes. Its kind sizes its
// generations by them.
func (m *Memo) Listed(objects, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.passing {
		m.forget()
		return
	}
	m.listed.objects = max(objects, m.listed.objects-m.listed.objects/8)
	m.listed.bytes = max(bytes, m.listed.bytes-m.listed.bytes/8)
	m.arrived = 0
	m.resize(m.size, m.listed)
}

// Moved tells the memo that bytes of objects have come since the list, or are gone if there are
// fewer.
func (m *Memo) Moved(bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.listed.bytes == 0 {
		return // it arrives still, or passes
	}
	m.listed.bytes = max(1, m.listed.bytes+bytes)
	// Seldom: it takes a lock of the kind.
	if 8*max(m.listed.bytes-m.size.bytes, m.size.bytes-m.listed.bytes) > m.size.bytes {
		m.resize(m.size, m.listed)
	}
}

// arriveLocked notes an object while the size of the collection is not known.
func (m *Memo) arriveLocked(bytes int) {
	m.arrived = min(m.arrived+bytes, 8*maxArrived)
	if m.arrived-m.size.bytes > m.size.bytes/arrivedPart {
		m.resize(m.size, size{m.listed.objects, m.arrived})
	}
}

// take begins an object, which is new or another state of one. It returns nil if the object is to
// be decoded plainly.
func (m *Memo) take(size int, added bool) *decoder {
	m.mu.Lock()
	if m.listed.bytes == 0 && !m.passing {
		m.arriveLocked(size)
	}
	last, early := m.last, m.early.Load() > 0
	if early {
		m.stats.Bytes += uint64(size)
		if added {
			m.early.Add(-int64(size))
		}
	}
	m.mu.Unlock()
	if early {
		return nil
	}
	d := m.common.take(last)
	d.counts.bytes = uint64(size)
	d.objects++
	return d
}

// giveBack ends an object.
func (m *Memo) giveBack(d *decoder) {
	counted := d.counts
	d.counts = counts{}
	at := d.giveBack()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = at
	m.stats.Bytes += counted.bytes
	m.stats.Same += counted.same
	m.stats.Shared += counted.shared
	m.stats.Lookups += counted.lookups
	m.stats.Hits += counted.hits
}

// Doubt makes every value of the kind be compared with its bytes before it is handed out again.
// That costs one decoding for each value that comes again.
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
func (m *Memo) Doubt() { m.doubts.Add(1) }

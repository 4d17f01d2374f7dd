package sharing

import (
	"reflect"
	"slices"
	"sync"
)

// A change of an object differs from its last state in few parts. So the bytes of each part are
// compared with the Go value that the last state has there (match.go). An equal part is taken over
// without a hash or a copy, such as a name, an address or the whole spec of this object alone.
//
// The last state is rarely in the processor's cache, so it is slow to read. Therefore adjacent
// fields that were equal are noted with one key, and the next change is compared with that key.
//
// The reader's store has the last state, and only a weak pointer leads to it. A caller without such
// pointers of its own leaves them to the memo, which keeps them by the object's UID.

// latest leads to the state of an object after its last change.
type latest struct {
	uid   string
	state func() any // nil once nobody keeps it
	parts []note
}

// size estimates the bytes of an entry in its map.
func (l latest) size() int { return latestBytes + noteBytes*len(l.parts) }

// note is the key of a part that did not change: adjacent fields of a message, or an element.
type note struct {
	at   path
	key  key
	size int // bytes on the wire
}

// path is a place in an object, in five numbers: a field, a field in it, an element (from 1 on), a
// field in the element, and the last field of a run. The run begins with the field that the other
// numbers name. Numbers that are not needed are 0.
type path uint64

const (
	step       = 11 // bits of a number: up to highest
	outerShift = 4 * step
	innerShift = 3 * step
	elemShift  = 2 * step
	partShift  = 1 * step
	lastField  = 1<<step - 1 // the bits of a run's last field
	maxTraced  = 1<<step - 2 // elements that a path can tell apart

	latestBytes = 192 // without parts
	noteBytes   = 32
	minNoted    = 48 // bytes of a part: a smaller one is compared faster than hashed
	maxNotes    = 48 // of an object
	// maxNotedBytes is the largest part that is noted: a larger one is compared as fast.
	maxNotedBytes = 64 << 10
	// maxNotedList is the longest list whose elements are noted: the notes of a long one would
	// take as much memory as its elements.
	maxNotedList = 16
	notedAnew    = 16 // one change in so many also compares parts that differed the last time
	inFull       = 32 // one change in so many uses the memo alone, so that shared values stay in it
)

// before is a message of the last state of an object, or a part of it; nil if there is none.
type before struct {
	ref
	at    path // zero if it lies too deep for notes
	shift int  // of the numbers of the fields
}

// rooted is a whole object.
func rooted(at ref) before { return before{at, 1 << (5 * step), outerShift} }

// path is where a field of the message is.
func (b before) path(number int) path { return b.at | path(number)<<b.shift }

// part is a field of the message.
func (b before) part(f *field) before {
	part := before{ref: b.field(f.offset)}
	if b.at != 0 {
		part.at, part.shift = b.path(f.number), b.shift
	}
	return part
}

// message is the message that a part is, or points to.
func (b before) message(at ref) before {
	if b.shift != outerShift {
		return before{ref: at}
	}
	return before{at, b.at, innerShift}
}

// element is element i of the list that a part is.
func (b before) element(i int, at ref) before {
	if b.shift < innerShift || i >= maxTraced {
		return before{ref: at}
	}
	return before{ref: at, at: b.at | path(i+1)<<elemShift, shift: partShift}
}

// trace has the notes of an object's last state, and those of the state that is decoded. Both are
// in the order of their paths.
type trace struct{ last, now []note }

// of returns the note of an element, or of the run of adjacent fields that begins at a path. Paths
// must be asked for in their order.
func (t *trace) of(at path) (n note, known bool) {
	for len(t.last) > 0 && t.last[0].at < at {
		t.last = t.last[1:]
	}
	if len(t.last) == 0 || t.last[0].at>>step != at>>step {
		return n, false
	}
	return t.last[0], true
}

// note notes a part, if there is room.
func (t *trace) note(n note) {
	if len(t.now) < maxNotes {
		t.now = append(t.now, n)
	}
}

// kept returns the notes to keep: the last ones if nothing is new.
func (t *trace) kept(last []note) []note {
	if slices.Equal(t.now, last) {
		return last
	}
	return slices.Clone(t.now)
}

// changes are the objects that changed lately, by UID, in two generations.
type changes struct {
	mu         sync.Mutex
	young, old map[string]latest
	bytes      int   // of young
	kept       habit // whether last states are still there: a reader may keep something else
}

func (c *changes) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.young) + len(c.old)
}

// latestOf returns what is known of an object that changes now, which may be nothing; ok is false
// if changes are not worth noting.
func (m *Memo) latestOf(uid []byte) (last latest, ok bool) {
	c := &m.noted
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.kept.wanted() {
		return last, false
	}
	last, known := c.young[string(uid)]
	if !known {
		last = c.old[string(uid)]
	}
	return last, true
}

// Change is an object that UnmarshalChange has decoded. Keep on a zero Change does nothing.
type Change struct {
	memo *Memo
	now  latest
}

// Keep notes the state that was decoded. From now on it must not be modified. The function state
// returns it, or nil once nobody keeps it.
func (c Change) Keep(state func() any) {
	m := c.memo
	if m == nil {
		return
	}
	c.now.state = state
	m.mu.Lock()
	most := min(max(m.limits.bytes, m.sizeLocked()/8), m.limits.most)
	m.mu.Unlock()
	all := &m.noted
	all.mu.Lock()
	defer all.mu.Unlock()
	if last, known := all.young[c.now.uid]; known {
		all.bytes -= last.size()
	}
	if all.bytes += c.now.size(); all.young == nil || all.bytes > most {
		all.old, all.young, all.bytes = all.young, map[string]latest{}, c.now.size()
	}
	delete(all.old, c.now.uid)
	all.young[c.now.uid] = c.now
}

// Forget drops the note of a deleted object.
func (m *Memo) Forget(uid []byte) {
	c := &m.noted
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, known := c.young[string(uid)]; known {
		c.bytes -= last.size()
		delete(c.young, string(uid))
	}
	delete(c.old, string(uid))
}

// Follows reports whether UnmarshalChange would compare an object of that size with its last state.
// A nil memo follows nothing.
func (m *Memo) Follows(size int) bool { return m != nil && size >= m.limits.follow }

// UnmarshalChange is [Memo.Unmarshal] for a new state of an object. Last is the address of the last
// state, an object of obj's type that nobody modifies. If it is nil, the memo looks for the state
// that [Change.Keep] was told.
func (m *Memo) UnmarshalChange(uid []byte, last *byte, data []byte, obj unmarshaler) (c Change, err error) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct || !m.Follows(len(data)) {
		return c, m.Unmarshal(data, obj)
	}
	noted, ok := m.latestOf(uid)
	if !ok && last == nil {
		return c, m.Unmarshal(data, obj)
	}
	at := m.lastState(&noted, last, v.Type())
	d := m.take(len(data))
	if d.changes++; d.changes%inFull == 0 {
		at = ref{}
	}
	d.compares = len(noted.parts) == 0 || d.changes%notedAnew == 0
	d.trace = trace{last: noted.parts, now: d.trace.now[:0]}
	err = d.object(v, obj, data, rooted(at))
	if err == nil && ok && (last == nil || len(d.trace.now) > 0) {
		if noted.uid == "" {
			noted.uid = string(uid)
		}
		c = Change{m, latest{uid: noted.uid, parts: d.trace.kept(noted.parts)}}
	}
	d.trace.last = nil
	d.giveBack()
	return c, err
}

// lastState is the last state of an object of a type: at last if the caller knows it, else what was
// kept. The parts of another state are not noted for it.
func (m *Memo) lastState(noted *latest, last *byte, t reflect.Type) ref {
	at := refOf(last)
	if noted.state == nil {
		return at
	}
	var kept ref
	if state := reflect.ValueOf(noted.state()); state.IsValid() && state.Type() == t {
		kept = refTo(state)
	}
	if last == nil {
		m.stateKept(!kept.isNil())
		at = kept
	}
	if kept.isNil() || kept != at {
		noted.parts = nil
	}
	return at
}

func (m *Memo) stateKept(kept bool) {
	m.noted.mu.Lock()
	defer m.noted.mu.Unlock()
	m.noted.kept.looked(kept)
}

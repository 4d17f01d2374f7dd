package sharing

import (
	"reflect"
	"slices"
	"sync"
)

// An object that has changed once will change again, and in few of its parts. So for each object
// that changes, the memo keeps the keys of its larger parts and a weak pointer to the decoded
// state. In the next state, a part with the same key takes its value from there. That also serves
// parts that no other object has: names, addresses, the spec as a whole.
//
// The state lives only as long as its reader keeps it. If it is gone, or a key differs, the part
// is decoded like any other.

// latest is the state of an object after its last change.
type latest struct {
	uid   string
	state func() any // nil once nobody keeps it
	parts []part     // by path
}

// size is about the bytes that a note takes.
func (l latest) size() int { return latestBytes + partBytes*len(l.parts) }

// part is the run of one field, or one element of it.
type part struct {
	path path
	key  key
}

// path is a place in an object: the number of a field, the number of a field in that, an element
// of it, from 1, and the number of a field in the element. Each has room for highest.
type path uint64

const (
	step       = 11 // bits
	outerShift = 3 * step
	innerShift = 2 * step
	elemShift  = 1 * step
	partShift  = 0 * step
	maxTraced  = 1<<step - 2 // elements that a path can tell apart

	minTraced      = 48       // bytes: less is decoded sooner than hashed
	maxTracedBytes = 16 << 10 // more is compared field by field
	maxParts       = 256      // of an object; a pod has some 20, of 24 bytes
	latestBytes    = 256      // of a note without parts, in its map
	partBytes      = 24
	inFull         = 8 // one change in so many uses the memo alone: shared values stay in it
)

// changes are the objects that changed lately, by UID, in two generations.
type changes struct {
	mu         sync.Mutex
	young, old map[string]latest
	bytes      int // of young
	count      int
	kept       habit // whether last states are still there: a reader may keep something else
}

func (c *changes) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.young) + len(c.old)
}

// latestOf returns the last state of an object that changes now; ok is false if changes are not
// worth noting. The state may be without parts.
func (m *Memo) latestOf(uid []byte) (last latest, ok bool) {
	c := &m.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.kept.wanted() {
		return last, false
	}
	last, known := c.young[string(uid)]
	if !known {
		last, known = c.old[string(uid)]
	}
	if c.count++; c.count%inFull == 0 || !known {
		return latest{uid: last.uid}, true
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
	most := min(max(m.limits.bytes, m.largest/4), m.limits.most) // a pod of 8 KB takes 1.2 KB
	m.mu.Unlock()
	all := &m.changes
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.young == nil {
		all.young = map[string]latest{}
	}
	last, known := all.young[c.now.uid]
	if known {
		all.bytes -= last.size()
	}
	if all.bytes += c.now.size(); all.bytes > most {
		all.old, all.young, all.bytes = all.young, map[string]latest{}, c.now.size()
	}
	delete(all.old, c.now.uid)
	all.young[c.now.uid] = c.now
}

// Forget drops the note of a deleted object.
func (m *Memo) Forget(uid []byte) {
	c := &m.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, known := c.young[string(uid)]; known {
		c.bytes -= last.size()
		delete(c.young, string(uid))
	}
	delete(c.old, string(uid))
}

// UnmarshalChange is [Memo.Unmarshal] for a new state of an object that was decoded before.
func (m *Memo) UnmarshalChange(uid []byte, data []byte, obj unmarshaler) (c Change, err error) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct || len(data) < m.limits.follow {
		return c, m.Unmarshal(data, obj)
	}
	d := m.take(len(data))
	c, err = d.change(uid, v, obj, data)
	d.giveBack()
	return c, err
}

// change decodes an object beside its last state.
func (d *decoder) change(uid []byte, v reflect.Value, obj unmarshaler, data []byte) (c Change, err error) {
	if d.givesUp(&d.rootOf(v.Type().Elem()).changes, data) {
		return c, obj.Unmarshal(data)
	}
	last, ok := d.latestOf(uid)
	if !ok {
		return c, d.object(v, obj, data, nil)
	}
	root := traced{shift: outerShift}
	if last.state != nil {
		state := reflect.ValueOf(last.state())
		if state.IsValid() && state.Type() == v.Type() {
			root.last = refTo(state)
		}
		d.stateKept(!root.last.isNil())
	}
	d.trace.last, d.trace.now = last.parts, d.trace.now[:0]
	root.trace = &d.trace
	err = d.object(v, obj, data, &root)
	if err == nil {
		if last.uid == "" {
			last.uid = string(uid)
		}
		c = Change{d.Memo, latest{uid: last.uid, parts: slices.Clone(d.trace.now)}}
	}
	d.trace.last = nil
	return c, err
}

func (m *Memo) stateKept(kept bool) {
	m.changes.mu.Lock()
	defer m.changes.mu.Unlock()
	m.changes.kept.looked(kept)
}

// trace has the parts of the last state of an object, and those of the state that is decoded.
type trace struct{ last, now []part }

// repeats notes a part, and reports whether the last state had the same one.
func (t *trace) repeats(at path, k key) bool {
	if len(t.now) == maxParts {
		return false
	}
	t.now = append(t.now, part{at, k})
	for len(t.last) > 0 && t.last[0].path < at {
		t.last = t.last[1:]
	}
	return len(t.last) > 0 && t.last[0] == part{at, k}
}

// traced is a message beside the same message in the last state of its object.
type traced struct {
	trace *trace // nil: it is not known which object this is, or the message lies too deep
	last  ref    // nil if there was none
	at    path
	shift int
}

// below is the message in a field of this one.
func (t *traced) below(f *field) (b traced) {
	if t.trace == nil || t.shift != outerShift {
		return b
	}
	b = traced{trace: t.trace, at: t.path(f.number), shift: innerShift, last: t.last.field(f.offset)}
	if f.kind == pointed && !b.last.isNil() {
		b.last = b.last.target()
	}
	return b
}

// element is the message in element i of a field.
func (t *traced) element(f *field, i int) (b traced) {
	if t.trace == nil || t.shift < innerShift || i >= maxTraced {
		return b
	}
	b = traced{trace: t.trace, at: t.path(f.number) | path(i+1)<<elemShift, shift: partShift}
	if first, n := t.last.field(f.offset).slice(); i < n {
		b.last = first.element(i, f.elem.Size())
	}
	return b
}

// mark and forget are for a message that turns out to be of another form: its parts must not be
// relied on.
func (t *traced) mark() int {
	if t == nil || t.trace == nil {
		return 0
	}
	return len(t.trace.now)
}

func (t *traced) forget(mark int) {
	if t != nil && t.trace != nil {
		t.trace.now = t.trace.now[:mark]
	}
}

func (t *traced) path(number int) path { return t.at | path(number)<<t.shift }

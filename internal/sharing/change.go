package sharing

import (
	"reflect"
	"slices"

	"github.com/tributary-go/tributary/internal/wire"
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

	minTraced  = 32      // bytes: less is decoded sooner than hashed
	maxParts   = 256     // of an object; a pod has some 20, of 24 bytes
	maxChanged = 1 << 14 // objects of a generation
	inFull     = 8       // one change in so many uses the memo alone: shared values stay in it
)

// changes are the objects that changed lately, by UID, in two generations.
type changes struct {
	young, old map[string]latest
	count      int
	kept       habit // whether the last states are still there: a reader may keep something else
}

// latestOf returns the last state of an object that changes now; ok is false if changes are not
// worth noting. The state may be without parts.
func (m *Memo) latestOf(uid []byte) (last latest, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &m.changes
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
	defer m.mu.Unlock()
	all := &m.changes
	if len(all.young) >= maxChanged {
		all.old, all.young = all.young, nil
	}
	if all.young == nil {
		all.young = map[string]latest{}
	}
	delete(all.old, c.now.uid)
	all.young[c.now.uid] = c.now
}

// Forget drops the note of a deleted object.
func (m *Memo) Forget(uid []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.changes.young, string(uid))
	delete(m.changes.old, string(uid))
}

// UnmarshalChange is [Memo.Unmarshal] for a new state of an object that was decoded before.
func (m *Memo) UnmarshalChange(uid []byte, data []byte, obj unmarshaler) (c Change, err error) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return c, m.Unmarshal(data, obj)
	}
	last, ok := m.latestOf(uid)
	if !ok {
		return c, m.Unmarshal(data, obj)
	}
	root := traced{shift: outerShift}
	if last.state != nil {
		state := reflect.ValueOf(last.state())
		if state.IsValid() && state.Type() == v.Type() {
			root.last = state.Elem()
		}
		m.stateKept(root.last.IsValid())
	}
	p := m.planOf(v.Type().Elem())
	d := m.take(len(data))
	d.trace.last, d.trace.now = last.parts, d.trace.now[:0]
	root.trace = &d.trace
	err = d.object(p, v.Elem(), data, root)
	if err == nil {
		if last.uid == "" {
			last.uid = string(uid)
		}
		c = Change{m, latest{uid: last.uid, parts: slices.Clone(d.trace.now)}}
	}
	d.trace.last = nil
	d.giveBack()
	return c, err
}

func (m *Memo) stateKept(kept bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
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
	trace *trace        // nil: it is not known which object this is, or the message lies too deep
	last  reflect.Value // invalid if there was none
	at    path
	shift int
}

// below is the message in a field of this one.
func (t traced) below(f *field, number int) (b traced) {
	if t.trace == nil || t.shift != outerShift {
		return b
	}
	b = traced{trace: t.trace, at: t.path(number), shift: innerShift}
	if t.last.IsValid() {
		b.last = t.last.Field(f.index)
		if f.shape == pointer {
			b.last = b.last.Elem() // invalid if it is nil
		}
	}
	return b
}

// element is the message in element i of a field.
func (t traced) element(f *field, number, i int) (b traced) {
	if t.trace == nil || t.shift < innerShift || i >= maxTraced {
		return b
	}
	b = traced{trace: t.trace, at: t.path(number) | path(i+1)<<elemShift, shift: partShift}
	if t.last.IsValid() {
		if all := t.last.Field(f.index); i < all.Len() {
			b.last = all.Index(i)
		}
	}
	return b
}

// mark and forget are for a message that turns out to be of another form: its parts must not be
// relied on.
func (t traced) mark() int {
	if t.trace == nil {
		return 0
	}
	return len(t.trace.now)
}

func (t traced) forget(mark int) {
	if t.trace != nil {
		t.trace.now = t.trace.now[:mark]
	}
}

func (t traced) path(number int) path { return t.at | path(number)<<t.shift }

// unchanged looks for the run of a field in the last state of the same object. A key that was
// made on the way is returned. Texts are compared directly, since they are stored as they come.
func (w *walk) unchanged(f *field, number int, run []byte, count int) (k key, keyed, found bool) {
	if f.text {
		last := w.own.last
		return k, false, last.IsValid() && count == 1 && run[0]&7 == wire.Bytes && last.Field(f.index).String() == string(payload(run))
	}
	if h := w.ownHabits(f); h != nil {
		return w.m.lookBack(w.own, w.own.path(number), &h.whole, run)
	}
	return k, false, false
}

// unchangedElement does the same for an element of a field.
func (w *walk) unchangedElement(f *field, own traced, data []byte) (k key, keyed, found bool) {
	if h := w.ownHabits(f); h != nil && own.trace != nil {
		return w.m.lookBack(own, own.at, &h.each, data)
	}
	return k, false, false
}

// lookBack looks for a part in the last state, if the habit h says that it is worth it.
func (m *decoder) lookBack(own traced, at path, h *habit, data []byte) (k key, keyed, found bool) {
	if len(data) < minTraced || !h.wanted() {
		return k, false, false
	}
	k = m.keyOf(data)
	found = own.trace.repeats(at, k) && own.last.IsValid()
	if own.last.IsValid() {
		h.looked(found)
	}
	return k, true, found
}

// ownHabits are the habits of looking for a field, and for its elements, in the last state of an
// object.
type ownHabits struct{ whole, each habit }

// ownHabits are the habits of a field; nil if it is not looked for.
func (w *walk) ownHabits(f *field) *ownHabits {
	if w.own.trace == nil || w.at == nil {
		return nil
	}
	s := &w.at.slots[f.slot]
	if s.ownHabits == nil {
		s.ownHabits = &ownHabits{}
	}
	return s.ownHabits
}

package sharing

import (
	"reflect"
	"slices"
)

// What has changed once will change again, and in few of its parts. So of each object that changes it is noted which bytes
// stood in its upper fields, as their keys, and where the state that was made of them is. Of the next state, the fields with
// those very bytes are taken over from there, also such as no other object has: names, addresses, the spec as a whole.
//
// The state is held weakly: it lives as long as its reader keeps it. Without that, or with a key that differs, a field
// is decoded as it would be otherwise.

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

// path says where in an object: the number of a field, the number of a field in that, which element of it, from 1, and the number of
// a field in that element. Each has room for highest.
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
	inFull     = 8       // one change in so many is decoded in full, so that the memo sees what living objects share
)

// changes are the objects that changed lately, by UID, in two generations.
type changes struct {
	young, old map[string]latest
	count      int
	kept       habit // whether the last states are still there: a reader may keep something else
}

// latestOf is the state of an object that changes now; ok is false where it is not worth noting. A state may be without parts.
func (m *Memo) latestOf(uid []byte) (was latest, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &m.changes
	if !c.kept.wanted() {
		return was, false
	}
	was, known := c.young[string(uid)]
	if !known {
		was, known = c.old[string(uid)]
	}
	if c.count++; c.count%inFull == 0 || !known {
		return latest{uid: was.uid}, true
	}
	return was, true
}

// Change is an object that UnmarshalChange has decoded. Of the zero value nothing can be kept.
type Change struct {
	memo *Memo
	now  latest
}

// Keep notes the state that was decoded. From here on it must not be modified; state returns it, and nil when nobody keeps
// it any more.
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

// Forget drops the note of an object that was deleted.
func (m *Memo) Forget(uid []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.changes.young, string(uid))
	delete(m.changes.old, string(uid))
}

// UnmarshalChange is Unmarshal for an object that was there before, in another state.
func (m *Memo) UnmarshalChange(uid []byte, data []byte, obj unmarshaler) (c Change, err error) {
	v := reflect.ValueOf(obj)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return c, m.Unmarshal(data, obj)
	}
	was, ok := m.latestOf(uid)
	if !ok {
		return c, m.Unmarshal(data, obj)
	}
	root := traced{shift: outerShift}
	if was.state != nil {
		state := reflect.ValueOf(was.state())
		if state.IsValid() && state.Type() == v.Type() {
			root.was = state.Elem()
		}
		m.stateKept(root.was.IsValid())
	}
	p := m.planOf(v.Type().Elem())
	d := m.take(len(data))
	d.trace.old, d.trace.now = was.parts, d.trace.now[:0]
	root.trace = &d.trace
	err = d.object(p, v.Elem(), data, root)
	if err == nil {
		if was.uid == "" {
			was.uid = string(uid)
		}
		c = Change{m, latest{uid: was.uid, parts: slices.Clone(d.trace.now)}}
	}
	d.trace.old = nil
	d.giveBack()
	return c, err
}

func (m *Memo) stateKept(kept bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes.kept.looked(kept)
}

// trace is the way through one object: the parts of its last state, and those that it has now.
type trace struct{ old, now []part }

// repeats notes a part, and reports whether the last state had the same.
func (t *trace) repeats(at path, k key) bool {
	if len(t.now) == maxParts {
		return false
	}
	t.now = append(t.now, part{at, k})
	for len(t.old) > 0 && t.old[0].path < at {
		t.old = t.old[1:]
	}
	return len(t.old) > 0 && t.old[0] == part{at, k}
}

// traced is a message beside the one in the last state of the same object.
type traced struct {
	trace *trace        // nil: it is not known which object this is, or the message lies too deep
	was   reflect.Value // invalid where there was none
	at    path
	shift int
}

// below is a message that is a field of this one.
func (t traced) below(f *field, number int) (b traced) {
	if t.trace == nil || t.shift != outerShift {
		return b
	}
	b = traced{trace: t.trace, at: t.path(number), shift: innerShift}
	if t.was.IsValid() {
		b.was = t.was.Field(f.index)
		if f.shape == pointer {
			b.was = b.was.Elem() // invalid, where it is nil
		}
	}
	return b
}

// element is a message that is element i of a field.
func (t traced) element(f *field, number, i int) (b traced) {
	if t.trace == nil || t.shift < innerShift || i >= maxTraced {
		return b
	}
	b = traced{trace: t.trace, at: t.path(number) | path(i+1)<<elemShift, shift: partShift}
	if t.was.IsValid() {
		if all := t.was.Field(f.index); i < all.Len() {
			b.was = all.Index(i)
		}
	}
	return b
}

// mark and forget are for a message that turns out to be of another form: no parts of it can be relied on.
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

// unchanged looks for the run of a field in the last state of the same object. Its key is returned where it was made. A text is
// compared itself: it is what stands on the wire.
func (w *walk) unchanged(f *field, number int, run []byte, count int) (k key, keyed, found bool) {
	if f.text {
		was := w.own.was
		return k, false, was.IsValid() && count == 1 && run[0]&7 == wireBytes && was.Field(f.index).String() == string(payload(run))
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

// lookBack looks a part up whose habit is h. Its value is in the last state where it was there.
func (m *decoder) lookBack(own traced, at path, h *habit, data []byte) (k key, keyed, found bool) {
	if len(data) < minTraced || !h.wanted() {
		return k, false, false
	}
	k = m.keyOf(data)
	found = own.trace.repeats(at, k) && own.was.IsValid()
	if own.was.IsValid() {
		h.looked(found)
	}
	return k, true, found
}

// ownHabits are those of looking for a field in the last state of the same object: for all of it, and for its elements.
type ownHabits struct{ whole, each habit }

// ownHabits are those of a field; nil where it is not looked for.
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

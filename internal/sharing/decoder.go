package sharing

import "reflect"

// decoder is what one goroutine has of a memo while it decodes an object: the object before, the habits of its places, and
// room to work in. Who decodes alone always gets the same one.
type decoder struct {
	*Memo
	since  uint32          // the doubts after which before was decoded
	before map[any]*before // by plan
	far    map[*site]*habit
	trace  trace
	doc    document
	sum    []byte // of hash
	names  map[string]string

	nameBytes int

	root      treeSite
	treeSites int

	equal, shared uint64 // parts that the object before had too, and their bytes
}

// maxIdle is how many decoders are kept. More only come to be where more goroutines decode at once.
const maxIdle = 4

// take begins an object.
func (m *Memo) take(size int) *decoder {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.beginLocked(size)
	last := len(m.idle) - 1
	if last < 0 {
		return &decoder{Memo: m, since: m.doubts, before: map[any]*before{}, far: map[*site]*habit{}, sum: make([]byte, 0, len(Digest{}))}
	}
	d := m.idle[last]
	m.idle = m.idle[:last]
	if d.since != m.doubts {
		d.since = m.doubts
		d.doubtBefore()
	}
	return d
}

// giveBack ends it. A decoder that panicked never comes back.
func (d *decoder) giveBack() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stats.Same += d.equal
	d.stats.Shared += d.shared
	d.equal, d.shared = 0, 0
	d.doc.end()
	if len(d.idle) < maxIdle {
		d.idle = append(d.idle, d)
	}
}

// same counts a part that the object before had too.
func (d *decoder) same(size int) {
	d.equal++
	d.shared += uint64(size)
}

// beforeOf is the object before of the type that plan is for.
func (d *decoder) beforeOf(plan any, t reflect.Type, slots int) *before {
	b := d.before[plan]
	if b == nil {
		b = newBefore(t, slots)
		d.before[plan] = b
	}
	return b
}

// whole is the habit of looking up a field in a place.
func (d *decoder) whole(at *place, in int, s *site) *habit {
	if at == nil {
		return d.farHabit(s)
	}
	return &at.slots[in].whole
}

// each is the habit of looking up the element that is in a place.
func (d *decoder) each(at *place, s *site) *habit {
	if at == nil {
		return d.farHabit(s)
	}
	return &at.element
}

// farHabit is that of a field where places are not told apart.
func (d *decoder) farHabit(s *site) *habit {
	h := d.far[s]
	if h == nil {
		h = &habit{}
		d.far[s] = h
	}
	return h
}

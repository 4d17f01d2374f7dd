package sharing

import "reflect"

// A decoder of protobuf has a tree of nodes, one for each message type at each path of an object.
// A node knows how look-ups went lately in its place, and the values that stood there last:
// neighbours in a list are alike, since it is sorted by name and the pods of a ReplicaSet follow
// each other.

// node is one message type at one path. Elements of a list have one node together.
type node struct {
	plan   *plan
	slots  []protoSlot
	arrays []reflect.Type // of the message, by number of elements
}

// protoSlot is the knowledge of one field at one path.
type protoSlot struct {
	whole shareable  // all occurrences together
	each  *shareable // each occurrence of a repeated message
	below *node
	last  ref // the last scalar, of a pointer to one
	found ref // where a value is put to be compared
}

// shareable is a part that may be equal in other objects.
type shareable struct {
	habit
	recent []recent
}

// recent is a value that stood here lately, with its bytes.
type recent struct {
	data []byte
	at   ref // of a copy
	key  key // zero if the memo has the value, or is not to have it
}

// root is the node of a type of objects. The habits say whether so much is found that interning is
// worth its price: otherwise the generated code decodes the objects for a while.
type root struct {
	*node
	objects, changes habit
}

func (d *decoder) newRoot(t reflect.Type) *root {
	r := &root{node: d.newNode(d.planOf(t))}
	d.roots[t] = r
	return r
}

func (d *decoder) newNode(p *plan) *node {
	n := &node{plan: p, slots: make([]protoSlot, p.slots)}
	for i := range p.fields {
		if f := &p.fields[i]; f.kind == repeated {
			n.slots[f.slot].each = &shareable{}
		}
	}
	d.nodes = append(d.nodes, n)
	return n
}

// below is the node of a field; nil if there are too many.
func (d *decoder) below(n *node, f *field) *node {
	s := &n.slots[f.slot]
	if s.below == nil && len(d.nodes) < maxNodes {
		nested := f.nested.Load()
		if nested == nil {
			nested = d.planOf(f.elem)
			f.nested.Store(nested)
		}
		s.below = d.newNode(nested)
	}
	return s.below
}

// giveBackRecent lets go of the recent values of a part that rests.
func (d *decoder) giveBackRecent(s *shareable) {
	for i := range s.recent {
		d.recentBytes -= len(s.recent[i].data)
	}
	s.recent = nil
}

// forgetRecent lets go of all recent values and names. Habits stay.
func (d *decoder) forgetRecent() {
	for _, n := range d.nodes {
		for i := range n.slots {
			s := &n.slots[i]
			s.whole.recent, s.last = nil, ref{}
			if s.each != nil {
				s.each.recent = nil
			}
		}
	}
	d.recentBytes = 0
	d.names, d.nameBytes = nil, 0
}

// array makes n zero messages.
func (n *node) array(count int) ref {
	t := n.plan.typ
	if count == 1 {
		return refTo(reflect.New(t))
	}
	if count > maxArray {
		return refTo(reflect.MakeSlice(reflect.SliceOf(t), count, count))
	}
	for len(n.arrays) <= count {
		n.arrays = append(n.arrays, nil)
	}
	if n.arrays[count] == nil {
		n.arrays[count] = reflect.ArrayOf(count, t)
	}
	return refTo(reflect.New(n.arrays[count]))
}

// sought is a part that is looked for, and was not found: it is to be decoded, and perhaps kept.
type sought struct {
	key    key
	kept   bool // by the decoder
	shared bool // by the memo too
}

// seek looks for a part: among the values that stood in its place lately, and in the memo. It
// assigns the value that it finds.
func (d *decoder) seek(s *shareable, of *site, to ref, b []byte, least, index int) (p sought, found bool) {
	if s.skip > 0 { // the place rests
		s.skip--
		return p, false
	}
	if len(b) < least || len(b) > maxPart {
		return p, false
	}
	if i := index % maxRecent; i < len(s.recent) && string(s.recent[i].data) == string(b) {
		r := &s.recent[i]
		s.same(d.objects)
		to.set(of.typ, r.at)
		d.same(len(b))
		if r.key != (key{}) {
			d.keep(of, &s.habit, r.key, len(b), r.at.value(of.typ))
			r.key = key{}
		}
		return p, true
	}
	if len(b) > d.limits.part {
		p.kept = true
		return p, false
	}
	p.key = d.keyOf(b)
	found, known := d.find(of, &s.habit, p.key, len(b), to)
	if found {
		d.keepPart(s, of, to, b, index, sought{kept: true})
		return p, true
	}
	if s.skip > 0 {
		d.giveBackRecent(s)
		return p, false
	}
	p.kept, p.shared = true, known || s.good || s.pause == 0 && s.tries == 1
	if !p.shared && d.met.again(of, p.key) {
		p.shared = true
		s.hits++ // of the values that repeat, the first one is not kept
	}
	return p, false
}

// keepPart keeps a part that was not found, and is decoded now: in the memo if it is shared, and a
// copy in its place for the next object. With a key, the memo gets the value once it is met again.
func (d *decoder) keepPart(s *shareable, of *site, value ref, b []byte, index int, p sought) {
	if !p.kept {
		return
	}
	if p.shared {
		d.keep(of, &s.habit, p.key, len(b), value.value(of.typ))
		p.key = key{}
	}
	if len(b) > d.limits.recent || d.recentMost == 0 {
		return
	}
	i := index % maxRecent
	for len(s.recent) <= i {
		s.recent = append(s.recent, recent{})
	}
	r := &s.recent[i]
	if d.recentBytes += len(b) - len(r.data); d.recentBytes > d.recentMost {
		d.forgetRecent()
		return
	}
	r.data = append(r.data[:0], b...)
	if r.at.p == nil {
		r.at = refTo(reflect.New(of.typ))
	}
	r.at.set(of.typ, value)
	r.key = p.key
}

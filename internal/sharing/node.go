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
	whole, each shareable // all occurrences together, and each one
	below       *node
	last        ref // what a pointer to a scalar pointed to last
	found       ref // where a value is put to be compared
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

const (
	maxArray  = 64      // elements of arrays whose types are made; longer ones cost 24 bytes more
	maxRecent = 8       // values of one part: elements of lists are told apart by position
	maxNodes  = 1 << 12 // of one decoder

	// A decoder keeps so many bytes of wire beside recent values: a part of the collection's,
	// within bounds. When there are more, it begins anew.
	recentPart     = 64
	minRecentBytes = 64 << 10
	maxRecentBytes = 1 << 20
)

// root is the node of a type of objects. The habits say whether so much is found that interning is
// worth its price: otherwise the generated code decodes the objects for a while.
type root struct {
	*node
	objects, changes habit
}

// rootOf is the root of a type.
func (d *decoder) rootOf(t reflect.Type) *root {
	r := d.roots[t]
	if r == nil {
		r = &root{node: d.newNode(d.planOf(t))}
		d.roots[t] = r
	}
	return r
}

func (d *decoder) newNode(p *plan) *node {
	n := &node{plan: p, slots: make([]protoSlot, p.slots)}
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

// same finds a part among those that stood here lately.
func (s *shareable) same(b []byte, index int) *recent {
	if i := index % maxRecent; i < len(s.recent) && string(s.recent[i].data) == string(b) {
		return &s.recent[i]
	}
	return nil
}

// remember keeps a copy of a value, of type t, for the next object. With a key, the memo gets the
// value once it is met again.
func (d *decoder) remember(s *shareable, t reflect.Type, value ref, b []byte, index int, k key) {
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
	if r.at.isNil() {
		r.at = newOf(t)
	}
	r.at.set(t, value)
	r.key = k
}

// giveBack lets go of the recent values of a part that rests.
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
			s.whole.recent, s.each.recent, s.last = nil, nil, ref{}
		}
	}
	d.recentBytes = 0
	d.names, d.nameBytes = nil, 0
}

// begun makes a list of messages, the first ones of which are those of another.
func (n *node) begun(count int, of ref, first int) ref {
	t := n.plan.typ
	made := n.array(count)
	for i := range first {
		made.element(i, t.Size()).set(t, of.element(i, t.Size()))
	}
	return made
}

// array makes n zero messages.
func (n *node) array(count int) ref {
	t := n.plan.typ
	if count == 1 {
		return newOf(t)
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
	return newOf(n.arrays[count])
}

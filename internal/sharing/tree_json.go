package sharing

import (
	"encoding/binary"
	"reflect"
	"sync"

	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/wire"
)

// treeMemo is the values that were decoded into unstructured objects. Their meaning does not
// depend on their place, so there is one table for all. Habits are kept by path.
type treeMemo [treeShards]treeShard

// treeShard is the values of some keys, under a lock of its own.
type treeShard struct {
	mu         sync.Mutex
	young, old map[key]treeValue
}

const treeShards = 16

// shard is the shard of a key. A short key is text, so its bytes are mixed.
func (t *treeMemo) shard(k key) *treeShard {
	mixed := binary.LittleEndian.Uint64(k[:]) ^ binary.LittleEndian.Uint64(k[8:])
	return &t[mixed*0x9e3779b97f4a7c15>>60]
}

type treeValue struct {
	value   any
	size    int
	checked uint32 // as in table
}

// treeSite is a path, such as spec.containers[].env.
type treeSite struct {
	habit
	members  map[string]*treeSite
	elements *treeSite    // of an array, and of objects that have too many different members
	order    []treeMember // of the last object: the next one is likely to have the same
	size     int          // the number of its members, or of the last array's elements
}

// treeMember is a member that has a site of its own.
type treeMember struct {
	name string
	site *treeSite
}

const (
	maxTreeSites = 1 << 12 // of a decoder: schemas have some hundreds of paths
	maxMembers   = 1 << 8  // of an object: more are data, not a schema
	maxNames     = 1 << 15 // bytes, of a decoder
	maxName      = 1 << 9  // bytes: a label's has 317 at most
	minShared    = 3       // bytes: "" and {} cost nothing, small numbers neither
	maxOrder     = 32      // members whose order is kept
	maxSize      = 64      // members or elements for which room is made at once
	minMember    = 5       // bytes: "":0,
	minElement   = 2       // bytes: 0,
)

// UnmarshalTree decodes a JSON object as unstructured.Unstructured has it: objects are
// map[string]any, whole numbers int64, others float64. The outer map belongs to the caller; the
// values in it are shared. The error is that of sigs.k8s.io/json.
func (m *Memo) UnmarshalTree(data []byte) (map[string]any, error) {
	d := m.take(len(data))
	object, ok := d.wholeTree(data)
	d.giveBack()
	if ok {
		return object, nil
	}
	object = nil
	return object, kjson.UnmarshalCaseSensitivePreserveInts(data, &object)
}

func (m *decoder) wholeTree(data []byte) (object map[string]any, ok bool) {
	m.doc.Begin(data)
	if m.doc.Peek() != '{' || m.doc.Value() == nil {
		return nil, false
	}
	object, err := m.treeObject(&m.root, len(data))
	return object, err == nil && m.doc.Peek() == 0 && m.doc.At == len(data)
}

// treeObject decodes the next value, an object of at most size bytes.
func (m *decoder) treeObject(at *treeSite, size int) (map[string]any, error) {
	object := make(map[string]any, min(at.size, size/minMember))
	i := 0
	err := m.doc.Members('{', '}', func() error {
		raw, err := m.doc.Key()
		if err != nil {
			return err
		}
		name, site := at.next(m, i, raw)
		i++
		if m.drop && name == "managedFields" && at == m.root.members["metadata"] {
			raw = m.doc.Value()
			if m.doc.At += len(raw); len(raw) == 0 {
				return errForm
			}
			return nil
		}
		object[name], err = m.treeValue(site)
		return err
	})
	at.size = min(len(object), maxSize)
	return object, err
}

// treeValue decodes the next value, or finds it.
func (m *decoder) treeValue(at *treeSite) (any, error) {
	raw := m.doc.Value()
	if len(raw) == 0 {
		return nil, errForm
	}
	first := raw[0]
	if first != '"' && first != '{' && first != '[' {
		m.doc.At += len(raw)
		return treeScalar(raw)
	}
	looked := len(raw) >= minShared && len(raw) <= maxPart && at.wanted()
	var k key
	if looked {
		k = m.keyOf(raw)
		if value, ok := m.findTree(at, k, len(raw)); ok {
			m.doc.At += len(raw)
			return value, nil
		}
	}
	value, err := m.treeDecode(at, raw)
	if err == nil && looked && at.skip == 0 {
		value = m.keepTree(k, value, len(raw))
	}
	return value, err
}

func (m *decoder) treeDecode(at *treeSite, raw []byte) (any, error) {
	switch raw[0] {
	case '{':
		return m.treeObject(at, len(raw))
	case '[':
		array := make([]any, 0, min(at.size, len(raw)/minElement))
		err := m.doc.Members('[', ']', func() error {
			value, err := m.treeValue(at.element(m))
			array = append(array, value)
			return err
		})
		at.size = min(len(array), maxSize)
		if len(array) < cap(array) {
			array = append(make([]any, 0, len(array)), array...)
		}
		return array, err
	}
	m.doc.At += len(raw)
	if text, ok := wire.PlainText(raw); ok {
		return string(text), nil
	}
	return plainValue(raw)
}

// treeScalar decodes a number, true, false or null.
func treeScalar(raw []byte) (any, error) {
	if n, ok := wire.PlainInteger(raw); ok {
		return n, nil
	}
	return plainValue(raw)
}

func plainValue(raw []byte) (value any, err error) {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &value); err != nil {
		return nil, errForm
	}
	return value, nil
}

// name returns the name of a member, as a string that objects share.
func (m *decoder) name(raw []byte) string {
	if !m.naming.wanted() {
		return string(raw)
	}
	m.naming.tries++
	if name, known := m.names[string(raw)]; known {
		m.naming.hits++
		return name
	}
	name := string(raw)
	if len(name) > maxName {
		return name
	}
	if m.nameBytes += len(name); m.nameBytes > maxNames {
		m.names, m.nameBytes = nil, 0
		if m.naming.judge(); m.naming.skip > 0 {
			return name
		}
		m.nameBytes = len(name)
	}
	if m.names == nil {
		m.names = map[string]string{}
	}
	m.names[name] = name
	return name
}

// next is the name and the site of member i, which is compared with member i of the last object.
func (s *treeSite) next(m *decoder, i int, raw []byte) (string, *treeSite) {
	if i < len(s.order) && s.order[i].name == string(raw) {
		return s.order[i].name, s.order[i].site
	}
	name := m.name(raw)
	site := s.member(m, name)
	if s.members[name] == site {
		switch {
		case i < len(s.order):
			s.order[i] = treeMember{name, site}
		case i == len(s.order) && i < maxOrder:
			s.order = append(s.order, treeMember{name, site})
		}
	}
	return name, site
}

// member is the site of a member. If there are too many, they share one.
func (s *treeSite) member(m *decoder, name string) *treeSite {
	if next := s.members[name]; next != nil {
		return next
	}
	if len(s.members) >= maxMembers || m.treeSites >= maxTreeSites || len(name) > maxName {
		return s.element(m)
	}
	if s.members == nil {
		s.members = map[string]*treeSite{}
	}
	m.treeSites++
	next := &treeSite{}
	s.members[name] = next
	return next
}

func (s *treeSite) element(m *decoder) *treeSite {
	switch {
	case s.elements != nil:
	case m.treeSites >= maxTreeSites:
		return s
	default:
		m.treeSites++
		s.elements = &treeSite{}
	}
	return s.elements
}

func (m *decoder) findTree(at *treeSite, k key, size int) (value any, ok bool) {
	t, doubts := m.tree.shard(k), m.doubts.Load()
	t.mu.Lock()
	found, known := t.young[k]
	if !known {
		if found, known = t.old[k]; known && found.checked == doubts {
			m.renewTreeLocked(t, k, found.value, size, doubts)
		}
	}
	t.mu.Unlock()
	ok = known && found.checked == doubts
	m.counts.lookups++
	if ok {
		m.counts.hits++
		m.counts.shared += uint64(size)
	}
	at.looked(known)
	return found.value, ok
}

func (m *Memo) renewTreeLocked(t *treeShard, k key, value any, size int, checked uint32) {
	delete(t.old, k)
	m.forgot(1, size)
	m.keepTreeLocked(t, k, value, size, checked)
}

// keepTree remembers a value, and returns the one to use, as keep does.
func (m *decoder) keepTree(k key, value any, size int) any {
	if m.since != m.doubts.Load() {
		return value
	}
	t := m.tree.shard(k)
	t.mu.Lock()
	defer t.mu.Unlock()
	if last, known := t.young[k]; known {
		if last.checked == m.since || reflect.DeepEqual(last.value, value) {
			value = last.value
		}
		t.young[k] = treeValue{value, size, m.since}
		return value
	}
	if last, known := t.old[k]; known {
		if reflect.DeepEqual(last.value, value) {
			value = last.value
		}
		m.renewTreeLocked(t, k, value, size, m.since)
		return value
	}
	m.keepTreeLocked(t, k, value, size, m.since)
	return value
}

func (m *Memo) keepTreeLocked(t *treeShard, k key, value any, size int, checked uint32) {
	if t.young == nil {
		t.young = map[key]treeValue{}
	}
	t.young[k] = treeValue{value, size, checked}
	m.kept(size)
}

// age begins a new generation.
func (t *treeMemo) age(m *Memo) {
	for i := range t {
		s := &t[i]
		s.mu.Lock()
		for _, v := range s.old {
			m.forgot(1, v.size)
		}
		s.old, s.young = s.young, nil
		s.mu.Unlock()
	}
}

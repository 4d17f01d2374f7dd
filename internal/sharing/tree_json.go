package sharing

import (
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/wire"
)

// The values that were decoded into unstructured objects are at one site, since their meaning does
// not depend on their place. Habits are kept by path.

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

// UnmarshalTree decodes a JSON object as unstructured.Unstructured has it: objects are
// map[string]any, whole numbers int64, others float64. The outer map belongs to the caller; the
// values in it are shared. The error is that of sigs.k8s.io/json.
func (m *Memo) UnmarshalTree(data []byte) (map[string]any, error) {
	if d := m.take(len(data), true); d != nil {
		object, ok := d.wholeTree(data)
		d.doc.End()
		m.giveBack(d)
		if ok {
			return object, nil
		}
	}
	var object map[string]any
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
		object[name], err = m.treeNext(site)
		return err
	})
	at.size = min(len(object), maxSize)
	return object, err
}

// treeNext decodes the next value, or finds it.
func (m *decoder) treeNext(at *treeSite) (any, error) {
	raw := m.doc.Value()
	if len(raw) == 0 {
		return nil, errForm
	}
	first := raw[0]
	if first != '"' && first != '{' && first != '[' {
		m.doc.At += len(raw)
		return treeScalar(raw)
	}
	looked := len(raw) >= minShared && len(raw) <= m.limits.part && at.wanted()
	var k key
	if looked {
		k = m.keyOf(raw)
		if found, _ := m.find(m.tree, &at.habit, k, len(raw), refTo(m.treeRef.Addr())); found {
			m.doc.At += len(raw)
			return m.treeValue, nil
		}
	}
	value, err := m.treeDecode(at, raw)
	if err == nil && looked {
		m.treeValue = value
		m.keep(m.tree, &at.habit, k, len(raw), m.treeRef)
		value = m.treeValue
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
			value, err := m.treeNext(at.element(m))
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

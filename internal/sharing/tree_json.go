package sharing

import (
	"reflect"

	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/wire"
)

// treeMemo is the values that were decoded into unstructured objects. Their meaning does not
// depend on their place, so there is one table for all. Habits are kept by path.
type treeMemo struct {
	young, old map[key]treeValue
	bytes      int // of young
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
	elements *treeSite // of an array, and of objects that have too many different members
}

const (
	maxTreeSites = 1 << 12 // of a decoder: schemas have some hundreds of paths
	maxMembers   = 1 << 8  // of an object: more are data, not a schema
	maxNames     = 1 << 18 // bytes, of a decoder
	maxName      = 1 << 9  // bytes: a label's has 317 at most
	minShared    = 3       // bytes: "" and {} cost nothing, small numbers neither
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
	object, err := m.treeObject(&m.root)
	return object, err == nil && m.doc.Peek() == 0 && m.doc.At == len(data)
}

func (m *decoder) treeObject(at *treeSite) (map[string]any, error) {
	object := map[string]any{}
	err := m.doc.Members('{', '}', func() error {
		raw, err := m.doc.Key()
		if err != nil {
			return err
		}
		name := m.name(raw)
		if m.drop && name == "managedFields" && at == m.root.members["metadata"] {
			raw = m.doc.Value()
			if m.doc.At += len(raw); len(raw) == 0 {
				return errForm
			}
			return nil
		}
		object[name], err = m.treeValue(at.member(m, name))
		return err
	})
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
		return m.treeObject(at)
	case '[':
		array := []any{}
		err := m.doc.Members('[', ']', func() error {
			value, err := m.treeValue(at.element(m))
			array = append(array, value)
			return err
		})
		return array[:len(array):len(array)], err
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
	if name, ok := m.names[string(raw)]; ok {
		return name
	}
	name := string(raw)
	if len(name) > maxName {
		return name
	}
	if m.nameBytes += len(name); m.names == nil || m.nameBytes > maxNames {
		m.names, m.nameBytes = map[string]string{}, len(name)
	}
	m.names[name] = name
	return name
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
	m.mu.Lock()
	m.stats.Lookups++
	found, known := m.tree.young[k]
	if !known {
		if found, known = m.tree.old[k]; known && found.checked == m.doubts {
			m.renewTreeLocked(k, found.value, size)
		}
	}
	ok = known && found.checked == m.doubts
	if ok {
		m.stats.Hits++
		m.stats.Shared += uint64(size)
	}
	m.mu.Unlock()
	at.looked(known)
	return found.value, ok
}

func (m *Memo) renewTreeLocked(k key, value any, size int) {
	delete(m.tree.old, k)
	m.stats.Entries--
	m.stats.Held -= size
	m.keepTreeLocked(k, value, size)
}

// keepTree remembers a value, and returns the one to use, as keep does.
func (m *decoder) keepTree(k key, value any, size int) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.since != m.doubts {
		return value
	}
	if was, known := m.tree.young[k]; known {
		if was.checked == m.doubts || reflect.DeepEqual(was.value, value) {
			value = was.value
		}
		m.tree.young[k] = treeValue{value, size, m.doubts}
		return value
	}
	if was, known := m.tree.old[k]; known {
		if reflect.DeepEqual(was.value, value) {
			value = was.value
		}
		m.renewTreeLocked(k, value, size)
		return value
	}
	m.keepTreeLocked(k, value, size)
	return value
}

func (m *Memo) keepTreeLocked(k key, value any, size int) {
	if m.tree.young == nil {
		m.tree.young = map[key]treeValue{}
	}
	m.tree.young[k] = treeValue{value, size, m.doubts}
	m.tree.bytes += size
	m.keptLocked(size)
}

// age begins a new generation.
func (t *treeMemo) age() (entries, bytes int) {
	entries, bytes = len(t.young), t.bytes
	t.old, t.young, t.bytes = t.young, nil, 0
	return entries, bytes
}

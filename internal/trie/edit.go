package trie

import "slices"

// owner marks the nodes that one transaction made and may therefore change in place. It has a size, so that
// every owner has an address of its own.
type owner struct{ _ byte }

// Edit is a transaction on a Map: the Map it began from never changes. Not safe for concurrent use.
type Edit[K comparable, V any] struct {
	owner *owner
	root  *node[K, V]
	size  int
	hash  func(K) uint64 // hashOf, but for tests that want collisions
}

// Edit begins a transaction on m.
func (m Map[K, V]) Edit() *Edit[K, V] {
	return &Edit[K, V]{owner: new(owner), root: m.root, size: m.size, hash: hashOf[K]}
}

// Map returns the current contents. The transaction may go on; what it does later is not seen by this Map.
func (e *Edit[K, V]) Map() Map[K, V] {
	e.owner = new(owner)
	return Map[K, V]{root: e.root, size: e.size}
}

// Len is the number of entries now.
func (e *Edit[K, V]) Len() int { return e.size }

// Get returns the value under key now.
func (e *Edit[K, V]) Get(key K) (V, bool) { return e.root.get(e.hash(key), 0, key) }

// Set stores value under key and returns what was there.
func (e *Edit[K, V]) Set(key K, value V) (old V, replaced bool) {
	w := write[K, V]{owner: e.owner, hashOf: e.hash, hash: e.hash(key)}
	e.root = w.set(e.root, 0, entry[K, V]{key, value})
	if !w.found {
		e.size++
	}
	return w.old, w.found
}

// Delete removes key and returns what was there.
func (e *Edit[K, V]) Delete(key K) (old V, deleted bool) {
	w := write[K, V]{owner: e.owner, hashOf: e.hash, hash: e.hash(key)}
	root := w.delete(e.root, 0, key)
	if !w.found {
		return old, false
	}
	e.root, e.size = root, e.size-1
	return w.old, true
}

// write is one Set or Delete on its way down the trie.
type write[K comparable, V any] struct {
	owner  *owner
	hashOf func(K) uint64
	hash   uint64
	old    V
	found  bool
}

// own returns a node that this transaction may change, its slices included.
func (w *write[K, V]) own(n *node[K, V]) *node[K, V] {
	if n.owner == w.owner {
		return n
	}
	n = w.ownShell(n)
	n.entries = slices.Clone(n.entries)
	return n
}

// ownShell is own for a caller that replaces entries as a whole.
func (w *write[K, V]) ownShell(n *node[K, V]) *node[K, V] {
	if n.owner == w.owner {
		return n
	}
	return &node[K, V]{
		owner: w.owner, dataMap: n.dataMap, childMap: n.childMap,
		entries: n.entries, children: slices.Clone(n.children),
	}
}

func (w *write[K, V]) set(n *node[K, V], shift uint, put entry[K, V]) *node[K, V] {
	if n == nil {
		n = &node[K, V]{owner: w.owner}
	}
	if shift >= listAt {
		return w.setInList(n, put)
	}
	bit := slotBit(w.hash, shift)
	switch {
	case n.childMap&bit != 0:
		i := rank(n.childMap, bit)
		child := w.set(n.children[i], shift+width, put)
		if child != n.children[i] {
			n = w.own(n)
			n.children[i] = child
		}
		return n
	case n.dataMap&bit == 0:
		return w.withEntry(n, bit, put)
	}
	i := rank(n.dataMap, bit)
	there := n.entries[i]
	if there.key == put.key {
		n = w.own(n)
		w.old, w.found = there.value, true
		n.entries[i].value = put.value // the old key stays: equal, and already shared by older versions
		return n
	}
	// Two keys want this slot: both move one level down.
	down := write[K, V]{owner: w.owner, hash: w.hashOf(there.key), hashOf: w.hashOf}
	child := down.set(nil, shift+width, there)
	child = w.set(child, shift+width, put)
	n = w.withoutEntry(n, bit)
	return w.withChild(n, bit, child)
}

func (w *write[K, V]) setInList(n *node[K, V], put entry[K, V]) *node[K, V] {
	i := n.find(put.key)
	if i < 0 {
		return &node[K, V]{owner: w.owner, entries: inserted(n.entries, len(n.entries), put)}
	}
	n = w.own(n)
	w.old, w.found = n.entries[i].value, true
	n.entries[i].value = put.value
	return n
}

// delete returns n without key; nil when nothing is left, n itself when key was not there.
func (w *write[K, V]) delete(n *node[K, V], shift uint, key K) *node[K, V] {
	if n == nil {
		return nil
	}
	if shift >= listAt {
		return w.deleteFromList(n, key)
	}
	bit := slotBit(w.hash, shift)
	switch {
	case n.dataMap&bit != 0:
		e := n.entries[rank(n.dataMap, bit)]
		if e.key != key {
			return n
		}
		w.old, w.found = e.value, true
		if len(n.entries) == 1 && len(n.children) == 0 {
			return nil
		}
		return w.withoutEntry(n, bit)
	case n.childMap&bit == 0:
		return n
	}
	i := rank(n.childMap, bit)
	child := w.delete(n.children[i], shift+width, key)
	switch {
	case !w.found:
		return n
	case child == nil:
		panic("trie: a child of one entry was not folded into its parent")
	case len(child.children) == 0 && len(child.entries) == 1:
		return w.withEntry(w.withoutChild(n, bit), bit, child.entries[0])
	case child == n.children[i]: // changed in place
		return n
	}
	n = w.own(n)
	n.children[i] = child
	return n
}

func (w *write[K, V]) deleteFromList(n *node[K, V], key K) *node[K, V] {
	i := n.find(key)
	if i < 0 {
		return n
	}
	w.old, w.found = n.entries[i].value, true
	return &node[K, V]{owner: w.owner, entries: removed(n.entries, i)}
}

// The four below change a node's shape. The slice that grows or shrinks is made anew at its exact size, so that a
// frozen trie carries no spare capacity; the other one is copied when it belongs to an older version.

func (w *write[K, V]) withEntry(n *node[K, V], bit uint32, put entry[K, V]) *node[K, V] {
	entries := inserted(n.entries, rank(n.dataMap, bit), put)
	n = w.ownShell(n)
	n.entries, n.dataMap = entries, n.dataMap|bit
	return n
}

func (w *write[K, V]) withoutEntry(n *node[K, V], bit uint32) *node[K, V] {
	entries := removed(n.entries, rank(n.dataMap, bit))
	n = w.ownShell(n)
	n.entries, n.dataMap = entries, n.dataMap&^bit
	return n
}

func (w *write[K, V]) withChild(n *node[K, V], bit uint32, child *node[K, V]) *node[K, V] {
	children := inserted(n.children, rank(n.childMap, bit), child)
	n = w.own(n)
	n.children, n.childMap = children, n.childMap|bit
	return n
}

func (w *write[K, V]) withoutChild(n *node[K, V], bit uint32) *node[K, V] {
	children := removed(n.children, rank(n.childMap, bit))
	n = w.own(n)
	n.children, n.childMap = children, n.childMap&^bit
	return n
}

func inserted[E any](s []E, i int, e E) []E {
	out := make([]E, len(s)+1)
	copy(out, s[:i])
	out[i] = e
	copy(out[i+1:], s[i:])
	return out
}

func removed[E any](s []E, i int) []E {
	if len(s) == 1 {
		return nil
	}
	out := make([]E, len(s)-1)
	copy(out, s[:i])
	copy(out[i:], s[i+1:])
	return out
}

package trie

import "iter"

// Change is one difference between two versions of a Map. At least one of HadOld and HasNew is true.
type Change[K comparable, V any] struct {
	Key            K
	Old, New       V
	HadOld, HasNew bool
}

// Diff yields what turns before into after: each key once, values compared with ==. Its cost follows the
// difference when after was made from before by edits, since what they share is skipped by pointer.
func Diff[K, V comparable](before, after Map[K, V]) iter.Seq[Change[K, V]] {
	return func(yield func(Change[K, V]) bool) {
		diff(before.root, after.root, 0, yield)
	}
}

type visit[K comparable, V any] = func(Change[K, V]) bool

func diff[K, V comparable](a, b *node[K, V], shift uint, yield visit[K, V]) bool {
	switch {
	case a == b:
		return true
	case a == nil:
		return b.all(func(k K, v V) bool { return yield(added(k, v)) })
	case b == nil:
		return a.all(func(k K, v V) bool { return yield(gone(k, v)) })
	case shift >= listAt:
		return diffLists(a.entries, b.entries, yield)
	}
	for slots := a.dataMap | a.childMap | b.dataMap | b.childMap; slots != 0; slots &= slots - 1 {
		bit := slots & -slots
		oldEntry, oldChild := a.slot(bit)
		newEntry, newChild := b.slot(bit)
		var goOn bool
		switch {
		case oldEntry == nil && newEntry == nil:
			goOn = diff(oldChild, newChild, shift+width, yield)
		case oldEntry != nil && newChild != nil:
			goOn = diffGrown(oldEntry, newChild, yield)
		case newEntry != nil && oldChild != nil:
			goOn = diffShrunk(oldChild, newEntry, yield)
		default:
			goOn = diffEntries(oldEntry, newEntry, yield)
		}
		if !goOn {
			return false
		}
	}
	return true
}

// slot is what a node holds in one slot: an entry, a child, or neither.
func (n *node[K, V]) slot(bit uint32) (*entry[K, V], *node[K, V]) {
	switch {
	case n.dataMap&bit != 0:
		return &n.entries[rank(n.dataMap, bit)], nil
	case n.childMap&bit != 0:
		return nil, n.children[rank(n.childMap, bit)]
	}
	return nil, nil
}

// diffEntries compares two entries of one slot, either of which may be missing.
func diffEntries[K, V comparable](a, b *entry[K, V], yield visit[K, V]) bool {
	switch {
	case a != nil && b != nil && a.key == b.key:
		return a.value == b.value || yield(changed(a.key, a.value, b.value))
	case a != nil && !yield(gone(a.key, a.value)):
		return false
	}
	return b == nil || yield(added(b.key, b.value))
}

// diffGrown: one entry became a subtree, which may or may not still hold its key.
func diffGrown[K, V comparable](a *entry[K, V], b *node[K, V], yield visit[K, V]) bool {
	kept := false
	goOn := b.all(func(k K, v V) bool {
		if k != a.key {
			return yield(added(k, v))
		}
		kept = true
		return v == a.value || yield(changed(k, a.value, v))
	})
	return goOn && (kept || yield(gone(a.key, a.value)))
}

// diffShrunk: a subtree became one entry.
func diffShrunk[K, V comparable](a *node[K, V], b *entry[K, V], yield visit[K, V]) bool {
	kept := false
	goOn := a.all(func(k K, v V) bool {
		if k != b.key {
			return yield(gone(k, v))
		}
		kept = true
		return v == b.value || yield(changed(k, v, b.value))
	})
	return goOn && (kept || yield(added(b.key, b.value)))
}

func diffLists[K, V comparable](a, b []entry[K, V], yield visit[K, V]) bool {
	old, now := node[K, V]{entries: a}, node[K, V]{entries: b}
	for i := range a {
		j := now.find(a[i].key)
		switch {
		case j < 0 && !yield(gone(a[i].key, a[i].value)):
			return false
		case j >= 0 && a[i].value != b[j].value && !yield(changed(a[i].key, a[i].value, b[j].value)):
			return false
		}
	}
	for i := range b {
		if old.find(b[i].key) < 0 && !yield(added(b[i].key, b[i].value)) {
			return false
		}
	}
	return true
}

func added[K comparable, V any](k K, v V) Change[K, V] {
	return Change[K, V]{Key: k, New: v, HasNew: true}
}

func gone[K comparable, V any](k K, v V) Change[K, V] {
	return Change[K, V]{Key: k, Old: v, HadOld: true}
}

func changed[K comparable, V any](k K, before, after V) Change[K, V] {
	return Change[K, V]{Key: k, Old: before, New: after, HadOld: true, HasNew: true}
}

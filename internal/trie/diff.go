package trie

import "iter"

// Change is one difference between two versions of a Map. At least one of HadOld and HasNew is
// true.
type Change[K comparable, V any] struct {
	Key            K
	Old, New       V
	HadOld, HasNew bool
}

// Diff yields the changes that turn before into after: each key once, values compared by same. If
// after was made from before by edits, it costs as much as they changed: shared nodes are skipped
// by pointer.
func Diff[K comparable, V any](before, after Map[K, V], same func(a, b V) bool) iter.Seq[Change[K, V]] {
	return func(yield func(Change[K, V]) bool) {
		diff(before.root, after.root, same, yield)
	}
}

type visit[K comparable, V any] = func(Change[K, V]) bool

func diff[K comparable, V any](a, b *node[K, V], same func(a, b V) bool, yield visit[K, V]) bool {
	switch {
	case a == b:
		return true
	case a == nil:
		return b.each(func(entries []Entry[K, V]) bool { return tell(entries, yield, added) })
	case b == nil:
		return a.each(func(entries []Entry[K, V]) bool { return tell(entries, yield, gone) })
	case a.slots == 0:
		return diffFlat(a, b, same, yield, gone, added, changed)
	case b.slots == 0:
		return diffFlat(b, a, same, yield, added, gone, func(now, before Entry[K, V]) Change[K, V] { return changed(before, now) })
	}
	for slots := a.slots | b.slots; slots != 0; slots &= slots - 1 {
		bit := slots & -slots
		if !diff(a.inSlot(bit), b.inSlot(bit), same, yield) {
			return false
		}
	}
	return true
}

// inSlot is the child of a branch in one slot, or nil.
func (n *node[K, V]) inSlot(bit uint32) *node[K, V] {
	if n.slots&bit == 0 {
		return nil
	}
	return n.kid(rank(n.slots, bit))
}

// diffFlat compares a bucket or list with any node of the same place. It yields the entries that
// are only in flat, only in other, and in both with different values.
func diffFlat[K comparable, V any](flat, other *node[K, V], same func(a, b V) bool, yield visit[K, V],
	onlyFlat, onlyOther func(Entry[K, V]) Change[K, V], both func(flat, other Entry[K, V]) Change[K, V],
) bool {
	var few [bucketMax]bool
	entries, met := flat.entries(), few[:]
	if len(entries) > len(met) {
		met = make([]bool, len(entries))
	}
	goOn := other.eachTagged(func(tag uint8, e *Entry[K, V]) bool {
		i := flat.position(tag, e.Key)
		if i < 0 {
			return yield(onlyOther(*e))
		}
		met[i] = true
		return same(entries[i].Value, e.Value) || yield(both(entries[i], *e))
	})
	for i := 0; i < len(entries) && goOn; i++ {
		goOn = met[i] || yield(onlyFlat(entries[i]))
	}
	return goOn
}

// eachTagged calls visit with each entry and its tag, until it returns false.
func (n *node[K, V]) eachTagged(visit func(uint8, *Entry[K, V]) bool) bool {
	if n.slots == 0 {
		entries := n.entries()
		for i := range entries {
			if !visit(n.tag(i), &entries[i]) {
				return false
			}
		}
		return true
	}
	for _, kid := range n.kids() {
		if !kid.eachTagged(visit) {
			return false
		}
	}
	return true
}

func tell[K comparable, V any](entries []Entry[K, V], yield visit[K, V], as func(Entry[K, V]) Change[K, V]) bool {
	for i := range entries {
		if !yield(as(entries[i])) {
			return false
		}
	}
	return true
}

func added[K comparable, V any](e Entry[K, V]) Change[K, V] {
	return Change[K, V]{Key: e.Key, New: e.Value, HasNew: true}
}

func gone[K comparable, V any](e Entry[K, V]) Change[K, V] {
	return Change[K, V]{Key: e.Key, Old: e.Value, HadOld: true}
}

func changed[K comparable, V any](before, now Entry[K, V]) Change[K, V] {
	return Change[K, V]{Key: before.Key, Old: before.Value, New: now.Value, HadOld: true, HasNew: true}
}

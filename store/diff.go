package store

import (
	"iter"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/internal/trie"
)

// Change is the change of one key. An addition has no Old, a deletion has no New: they are nil, the
// zero T. A write without effect has the same object in both, see [Change.Unchanged].
type Change[T Entry] struct {
	Key      string
	Old, New T
}

// Added reports whether the object is there now and was not before.
func (c Change[T]) Added() bool { return pointer.None(c.Old) && !pointer.None(c.New) }

// Deleted reports whether the object is no longer there; Old is the last state that the store held.
func (c Change[T]) Deleted() bool { return !pointer.None(c.Old) && pointer.None(c.New) }

// Recreated reports whether Old was deleted and New created under the same key: their UIDs differ.
// [Diff] yields that as two changes.
func (c Change[T]) Recreated() bool {
	return !pointer.None(c.Old) && !pointer.None(c.New) && !c.Unchanged() &&
		c.Old.GetUID() != c.New.GetUID()
}

// Unchanged reports whether the write left the content as it was: the store already held that
// state, or did not hold the object to delete.
func (c Change[T]) Unchanged() bool { return pointer.Same(c.Old, c.New) }

// Diff yields the changes from before to after, in no particular order, each key once. Another UID
// under the same key is another object: it comes as a deletion and then an addition. If both
// snapshots come from one store, Diff costs as much as they differ.
func Diff[T Entry](before, after Snapshot[T]) iter.Seq[Change[T]] {
	was, now := before.kept(), after.kept()
	return func(yield func(Change[T]) bool) {
		for c := range trie.Diff(before.entries(), after.entries(), pointer.Same[Entry]) {
			change := Change[T]{Key: c.Key, Old: orNone[T](was, c.Old), New: orNone[T](now, c.New)}
			if change.Recreated() {
				if !yield(Change[T]{Key: c.Key, Old: change.Old}) || !yield(Change[T]{Key: c.Key, New: change.New}) {
					return
				}
				continue
			}
			if !yield(change) {
				return
			}
		}
	}
}

package store

import (
	"iter"

	"github.com/tributary-go/tributary/internal/trie"
)

// Change is one difference between two snapshots: an addition has no Old, a deletion no New (the zero T, nil).
type Change[T Object] struct {
	Key      string
	Old, New T
}

// Added reports whether the object was not there before.
func (c Change[T]) Added() bool { var none T; return c.Old == none }

// Deleted reports whether the object is no longer there; Old is the last state that the store held.
func (c Change[T]) Deleted() bool { var none T; return c.New == none }

// Diff yields what turns before into after, in no particular order, each key once. An object whose UID changed
// under the same key is another object: it comes as a deletion and then an addition. The cost follows the
// difference where both snapshots come from one store.
func Diff[T Object](before, after Snapshot[T]) iter.Seq[Change[T]] {
	return func(yield func(Change[T]) bool) {
		for c := range trie.Diff(before.objects(), after.objects()) {
			if c.HadOld && c.HasNew && c.Old.GetUID() != c.New.GetUID() {
				if !yield(Change[T]{Key: c.Key, Old: c.Old}) || !yield(Change[T]{Key: c.Key, New: c.New}) {
					return
				}
				continue
			}
			if !yield(Change[T]{Key: c.Key, Old: c.Old, New: c.New}) {
				return
			}
		}
	}
}

package store

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tributary-go/tributary/internal/trie"
)

// Snapshot is the content of a store at one moment. It never changes, copies are O(1), and any
// number of goroutines may read one. The zero value is empty. Its objects are read-only.
type Snapshot[T Entry] struct {
	at *version
}

// version has the objects, indexes and resource version of one instant (invariant 3). Snapshots
// point to it.
type version struct {
	entries         trie.Map[string, Entry]
	indexes         []any      // per entry of schema, the trie that its index made
	schema          []anyIndex // of pointers to an [Index]
	resourceVersion string
	kept            *kept

	few [2]any // the space of indexes, so that most versions are one allocation
}

// Len is the number of objects.
func (s Snapshot[T]) Len() int {
	if s.at == nil {
		return 0
	}
	return s.at.entries.Len()
}

// Get returns the object under key, which [Key] or [KeyOf] makes.
func (s Snapshot[T]) Get(key string) (obj T, ok bool) {
	if s.at == nil {
		return obj, false
	}
	entry, ok := s.at.entries.Get(trie.HashString(key), key)
	if !ok {
		return obj, false
	}
	return opened[T](s.at.kept, entry), true
}

// All yields every object with its key, in no particular order.
func (s Snapshot[T]) All() iter.Seq2[string, T] {
	if s.at == nil {
		return func(func(string, T) bool) {}
	}
	if s.at.kept == nil {
		return func(yield func(string, T) bool) {
			s.at.entries.All()(func(key string, entry Entry) bool { return yield(key, entry.(T)) })
		}
	}
	open := opener[T](s.at.kept)
	return func(yield func(string, T) bool) {
		s.at.entries.All()(func(key string, entry Entry) bool { return yield(key, open(entry)) })
	}
}

// Keys yields the key of every object, in no particular order. No object of a store that keeps them
// in another form is read.
func (s Snapshot[T]) Keys() iter.Seq[string] {
	if s.at == nil {
		return func(func(string) bool) {}
	}
	return s.at.entries.Keys()
}

// Sorted returns the objects ordered by namespace, then name. The slice is the caller's; making it
// is O(n log n).
func (s Snapshot[T]) Sorted() []T {
	objs := make([]T, 0, s.Len())
	for _, obj := range s.All() {
		objs = append(objs, obj)
	}
	slices.SortFunc(objs, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return objs
}

// ResourceVersion is the newest resource version up to which the snapshot is complete; empty if the
// store never got a version.
func (s Snapshot[T]) ResourceVersion() string {
	if s.at == nil {
		return ""
	}
	return s.at.resourceVersion
}

func (s Snapshot[T]) entries() trie.Map[string, Entry] {
	if s.at == nil {
		return trie.Map[string, Entry]{}
	}
	return s.at.entries
}

func (s Snapshot[T]) kept() *kept {
	if s.at == nil {
		return nil
	}
	return s.at.kept
}

// Entries is the same content as the store keeps it: none is opened.
func (s Snapshot[T]) Entries() Snapshot[Entry] { return Snapshot[Entry](s) }

// AtRest reports whether the store keeps its objects in another form, which each read opens.
func (s Snapshot[T]) AtRest() bool { return s.kept() != nil }

// Open returns the object of an entry that Entries has.
func (s Snapshot[T]) Open(entry Entry) T { return opened[T](s.kept(), entry) }

package undelta

import (
	"iter"
	"sync"

	"github.com/tributary-go/tributary/store"
)

// Store is a [store.Store] that pushes its full state once per change. Make one with [New].
type Store[T store.Object] struct {
	push func(store.Snapshot[T])

	// Held from a change to the end of its push, so that pushes keep the order of changes.
	pushing sync.Mutex
	objects *store.Indexer[T]
}

// New makes an empty store, with indexes if any are given, that calls push after each change, on
// the goroutine of the writer. push must not write into the store: it would wait for itself. New
// panics if push or an index is nil.
func New[T store.Object](push func(now store.Snapshot[T]), indexes ...store.AnyIndex[T]) *Store[T] {
	if push == nil {
		panic("undelta: New: the function that is to be pushed to is nil")
	}
	return &Store[T]{push: push, objects: store.NewIndexer(indexes...)}
}

// Snapshot is the content now; see [store.Indexer.Snapshot]. It may be ahead of a push in progress.
func (s *Store[T]) Snapshot() store.Snapshot[T] { return s.objects.Snapshot() }

// Add stores obj and pushes.
func (s *Store[T]) Add(obj T) error {
	return s.change(func() error { return s.objects.Add(obj) })
}

// Update stores obj and pushes.
func (s *Store[T]) Update(obj T) error {
	return s.change(func() error { return s.objects.Update(obj) })
}

// Delete removes the object under obj's key and pushes, even if there was no object.
func (s *Store[T]) Delete(obj T) error {
	return s.change(func() error { return s.objects.Delete(obj) })
}

// Replace makes items the whole content and pushes once. On an error the old content stays, and
// nothing is pushed.
func (s *Store[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	return s.change(func() error { return s.objects.Replace(items, resourceVersion) })
}

// Bookmark notes that the content is complete up to resourceVersion; it does not push.
func (s *Store[T]) Bookmark(resourceVersion string) error {
	return s.objects.Bookmark(resourceVersion)
}

// Resync pushes the present state again.
func (s *Store[T]) Resync() error {
	return s.change(func() error { return nil })
}

func (s *Store[T]) change(do func() error) error {
	s.pushing.Lock()
	defer s.pushing.Unlock()
	if err := do(); err != nil {
		return err
	}
	s.push(s.objects.Snapshot())
	return nil
}

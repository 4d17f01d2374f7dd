package undelta

import (
	"iter"
	"sync"

	"github.com/tributary-go/tributary/store"
)

// Store is a [store.Store] that pushes its full state once per change. Make one with [New] or
// [Over].
type Store[T store.Object] struct {
	push func()

	// Held from a change to the end of its push, so that pushes keep the order of changes.
	pushing sync.Mutex
	into    into[T]
}

// into is what the changes are written into.
type into[T store.Object] interface {
	store.Store[T]
	store.Snapshotter[T]
	store.Bookmarker
	Get(key string) (T, bool)
}

// New makes an empty store, with indexes if any are given, that calls push after each change, on
// the goroutine of the writer. push must not write into the store: it would wait for itself. New
// panics if push or an index is nil.
func New[T store.Object](push func(now store.Snapshot[T]), indexes ...store.AnyIndex[T]) *Store[T] {
	if push == nil {
		panic("undelta: New: the function that is to be pushed to is nil")
	}
	objects := store.NewIndexer(indexes...)
	return &Store[T]{push: func() { push(objects.Snapshot()) }, into: objects}
}

// Over lets a store that keeps its objects as bytes push its full state, such as that of package
// store/packed:
//
//	pods := packed.New[corev1.Pod]()
//	err := reflector.New(source.Encoded(), undelta.Over(pods, push)).Run(ctx)
//
// The result takes the bytes of a reflector into of, and calls push as [New] does. Each object that
// push reads is decoded. Nothing else may write into of. Over panics if push is nil.
func Over[T store.Object, S interface{ Base() *store.Indexer[T] }](of S, push func(now store.Snapshot[T])) *Store[*store.Encoded] {
	if push == nil {
		panic("undelta: Over: the function that is to be pushed to is nil")
	}
	objects := of.Base()
	return &Store[*store.Encoded]{push: func() { push(objects.Snapshot()) }, into: objects.Encoded().(into[*store.Encoded])}
}

// Snapshot is the content now; see [store.Indexer.Snapshot]. It may be ahead of a push in progress.
func (s *Store[T]) Snapshot() store.Snapshot[T] { return s.into.Snapshot() }

// Get returns one object of the content now, without a snapshot; see [store.Indexer.Get].
func (s *Store[T]) Get(key string) (T, bool) { return s.into.Get(key) }

// Add stores obj and pushes.
func (s *Store[T]) Add(obj T) error {
	return s.change(func() error { return s.into.Add(obj) })
}

// Update stores obj and pushes.
func (s *Store[T]) Update(obj T) error {
	return s.change(func() error { return s.into.Update(obj) })
}

// Delete removes the object under obj's key and pushes, even if there was no object.
func (s *Store[T]) Delete(obj T) error {
	return s.change(func() error { return s.into.Delete(obj) })
}

// Replace makes items the whole content and pushes once. On an error the old content stays, and
// nothing is pushed.
func (s *Store[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	return s.change(func() error { return s.into.Replace(items, resourceVersion) })
}

// Bookmark notes that the content is complete up to resourceVersion; it does not push.
func (s *Store[T]) Bookmark(resourceVersion string) error { return s.into.Bookmark(resourceVersion) }

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
	s.push()
	return nil
}

package undelta

import (
	"iter"
	"sync"

	"github.com/tributary-go/tributary/store"
)

// Over lets a store of objects at rest push its full state, such as that of package store/packed:
//
//	pods := packed.New[corev1.Pod]()
//	err := reflector.New(source.Encoded(), undelta.Over(pods, push)).Run(ctx)
//
// The result takes the bytes of a reflector into at, and calls push as [New] does. Each object that
// push reads is decoded. Nothing else may write into at. Over panics if push is nil.
func Over[T store.Object, S interface {
	store.Snapshotter[T]
	Encoded() store.Store[*store.Encoded]
}](at S, push func(now store.Snapshot[T])) store.Store[*store.Encoded] {
	if push == nil {
		panic("undelta: Over: the function that is to be pushed to is nil")
	}
	return &encoded{into: at.Encoded().(encodedStore), push: func() { push(at.Snapshot()) }}
}

// encodedStore is what a reflector asks of a store of bytes.
type encodedStore interface {
	store.Store[*store.Encoded]
	store.Snapshotter[*store.Encoded]
	store.Bookmarker
	Get(key string) (*store.Encoded, bool)
}

// encoded pushes after each write into a store of bytes.
type encoded struct {
	pushing sync.Mutex // as in Store
	into    encodedStore
	push    func()
}

func (s *encoded) Snapshot() store.Snapshot[*store.Encoded] { return s.into.Snapshot() }
func (s *encoded) Get(key string) (*store.Encoded, bool)    { return s.into.Get(key) }
func (s *encoded) Bookmark(resourceVersion string) error    { return s.into.Bookmark(resourceVersion) }
func (s *encoded) Add(obj *store.Encoded) error             { return s.change(s.into.Add, obj) }
func (s *encoded) Update(obj *store.Encoded) error          { return s.change(s.into.Update, obj) }
func (s *encoded) Delete(obj *store.Encoded) error          { return s.change(s.into.Delete, obj) }

func (s *encoded) Replace(items iter.Seq2[*store.Encoded, error], resourceVersion func() string) error {
	return s.change(func(*store.Encoded) error { return s.into.Replace(items, resourceVersion) }, nil)
}

func (s *encoded) change(do func(*store.Encoded) error, obj *store.Encoded) error {
	s.pushing.Lock()
	defer s.pushing.Unlock()
	if err := do(obj); err != nil {
		return err
	}
	s.push()
	return nil
}

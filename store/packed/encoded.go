package packed

import (
	"hash/maphash"
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// Encoded is the same store for a reflector that hands over bytes: an object is packed as it came,
// and decoded only if an index asks for it.
//
//	err := reflector.New(source.Encoded(), pods.Encoded()).Run(ctx)
func (s *Store[T]) Encoded() store.Store[*store.Encoded] { return &s.encoded }

// encoded is the store of the same objects as bytes. It hides the methods for objects.
type encoded[T store.Object] struct{ *Store[T] }

// Snapshot is the content now, closed.
func (s *encoded[T]) Snapshot() store.Snapshot[*store.Encoded] {
	return store.Opened(s.cells.Entries(), s.closed)
}

// Get returns an object without reading it.
func (s *encoded[T]) Get(key string) (e *store.Encoded, ok bool) {
	entry, ok := s.cells.Get(key)
	if !ok {
		return nil, false
	}
	return s.closed(entry), true
}

// closed is an object that stays at rest.
func (s *encoded[T]) closed(entry store.Object) *store.Encoded {
	id := entry.(*cell).identity()
	e := &store.Encoded{Entry: entry, Keeper: s}
	e.Namespace, e.Name, e.UID, e.ResourceVersion = id.namespace, id.name, types.UID(id.uid), id.resourceVersion
	return e
}

// Holds implements [store.Keeper].
func (s *encoded[T]) Holds(entry store.Object, data []byte) bool {
	return entry.(*cell).digest() == maphash.Bytes(seed, data)
}

// Open implements [store.Keeper]. An object that was decoded is encoded first, as it would be for
// the store.
func (s *encoded[T]) Open(e *store.Encoded) store.Object {
	if e.Entry != nil {
		return s.open(e.Entry)
	}
	var a arrival
	var err error
	if e.Data != nil {
		a, err = s.arrival(e)
	} else {
		a, err = s.arrivalOf(e.Decoded.(T), true)
	}
	if err != nil { // the store refuses it
		return e.Decoded
	}
	return s.object(a)
}

func (s *encoded[T]) Add(e *store.Encoded) error { return s.put(e) }

func (s *encoded[T]) Update(e *store.Encoded) error { return s.put(e) }

func (s *encoded[T]) Delete(e *store.Encoded) error { return remove(s.Store, e, s.arrival) }

func (s *encoded[T]) Replace(items iter.Seq2[*store.Encoded, error], resourceVersion func() string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return replace(s.Store, items, s.arrival, resourceVersion)
}

func (s *encoded[T]) put(e *store.Encoded) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	defer s.kin.borrow()()
	a, err := s.arrival(e)
	if err != nil {
		return err
	}
	return s.write(a)
}

// arrival takes the bytes as they are. A type that keeps apiVersion and kind has them before its
// message.
func (s *encoded[T]) arrival(e *store.Encoded) (a arrival, err error) {
	switch {
	case pointer.None(e):
		return a, errNil
	case e.Entry != nil:
		return arrival{cell: e.Entry.(*cell)}, nil
	case e.Data == nil:
		return s.arrivalOf(e.Decoded.(T), e.Fleeting)
	}
	a = arrival{identity: identityOf(e), document: e.Data, obj: e.Decoded, from: e}
	typed := e.Kind != "" || e.APIVersion != ""
	switch {
	case e.JSON && !typed:
		a.flags = flagJSON | flagBare
	case e.JSON:
		a.flags = flagJSON
	case typed:
		a.document = append(appendText(appendText(nil, e.APIVersion), e.Kind), e.Data...)
		a.flags = flagTyped
	}
	if e.JSON && s.form.tree {
		a.flags |= flagTree
	}
	if e.Fleeting || isSecret(e) {
		a.flags |= flagPlain
	}
	return a, nil
}

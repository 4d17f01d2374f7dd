package packed

import (
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"sync"

	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// Store is a [store.Store] and [store.Snapshotter] that keeps its objects as packed bytes. Make one
// with [New]. All methods are safe for concurrent use. Writers wait for each other; readers take no
// lock.
type Store[T store.Object] struct {
	form  form[T]
	cells *store.Closed[T]

	// Held while a write encodes and packs, and for the write itself.
	writing sync.Mutex
	kin     kin

	encoded encoded[T] // of this store
}

// New makes an empty store with the given indexes. O is the object's struct type:
//
//	pods := packed.New[corev1.Pod](byNode)
//
// It panics if an index is nil.
func New[O any, T interface {
	*O
	store.Object
}](indexes ...store.AnyIndex[T]) *Store[T] {
	return newStore(formOf[O, T](), indexes)
}

// Like is [New] for a type that is known at run time only, as that of example: it returns a
// function like New[corev1.Pod]. It panics if example is no pointer to a struct.
func Like[T store.Object](example T) func(indexes ...store.AnyIndex[T]) *Store[T] {
	form := formLike(example)
	return func(indexes ...store.AnyIndex[T]) *Store[T] { return newStore(form, indexes) }
}

func newStore[T store.Object](form form[T], indexes []store.AnyIndex[T]) *Store[T] {
	s := &Store[T]{form: form}
	s.cells = store.NewClosed(s.open, s.parts, indexes...)
	s.kin.plain, s.encoded.Store = s.form.secret, s
	return s
}

// Closed is the store as its entries, for an informer: the objects at rest. An entry is a
// read-only [store.Object], and has metadata alone. Each call of one of its methods reads the
// metadata, but for name, namespace, UID and resource version.
func (s *Store[T]) Closed() *store.Closed[T] { return s.cells }

// LearnNothing lets the store keep each object in its own bytes alone from now on, so that nothing
// of a deleted object is remembered. Secrets are kept so anyway, by their Go type or their kind. It
// is for other objects that must leave no trace, such as the metadata of Secrets.
func (s *Store[T]) LearnNothing() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.kin = kin{plain: true}
}

// Snapshot is the content now. Each read of an object decodes it, unless it is hot. Snapshots are
// equal to an [store.Indexer]'s in all else: they never change, and one is O(1).
func (s *Store[T]) Snapshot() store.Snapshot[T] { return s.cells.Snapshot() }

// ResourceVersion is that of the content now, without a snapshot.
func (s *Store[T]) ResourceVersion() string { return s.cells.ResourceVersion() }

// Get returns the object under key, and keeps it hot. It is read-only: other calls may return the
// same object.
func (s *Store[T]) Get(key string) (obj T, ok bool) {
	entry, ok := s.cells.Get(key)
	if !ok {
		return obj, false
	}
	c := entry.(*cell)
	if hot := c.hot.Load(); hot != nil {
		return hot.read().(T), true
	}
	obj = s.form.new()
	size := s.decode(c, obj)
	heat(c, obj, size)
	return obj, true
}

// Read decodes the object under key into obj, which is the caller's own. Nothing of obj's earlier
// content is left. It reports whether there is such an object; if not, obj stays as it was.
func (s *Store[T]) Read(key string, obj T) (found bool) {
	entry, ok := s.cells.Get(key)
	if ok {
		s.form.reset(obj)
		s.decode(entry.(*cell), obj)
	}
	return ok
}

// Add stores obj, in place of an object under its key. It fails on an object without a name, and on
// one that cannot be encoded. The store keeps the object's bytes, and while it is hot the object.
func (s *Store[T]) Add(obj T) error { return s.put(obj) }

// Update is the same as Add.
func (s *Store[T]) Update(obj T) error { return s.put(obj) }

// Delete removes the object under obj's key, if there is one.
func (s *Store[T]) Delete(obj T) error { return remove(s, obj, s.arrival) }

// remove is [Store.Delete] of an object in any form. An informer is told its final state, at rest.
func remove[T, I store.Object](s *Store[T], obj I, read func(I) (arrival, error)) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if pointer.None(obj) {
		return errNil
	}
	if !s.cells.IsFollowed() {
		return s.cells.Remove(obj)
	}
	defer s.kin.borrow()()
	a, err := read(obj)
	if err != nil {
		return err
	}
	return s.cells.Remove(s.arrived(a))
}

// Replace makes items the whole content; see [store.Store]. An object that the store already holds
// in the same bytes, with an equal UID and resource version, stays as it is.
func (s *Store[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return replace(s, items, s.arrival, resourceVersion)
}

// replace is [Store.Replace] of items in any form.
func replace[T, I store.Object](s *Store[T], items iter.Seq2[I, error], read func(I) (arrival, error), resourceVersion func() string) error {
	defer s.kin.borrow()()
	defer s.forget()
	s.forget()
	return s.cells.Replace(func(yield func(store.Object, error) bool) {
		list := s.kin.list(func(a arrival) bool { return yield(s.arrived(a), nil) })
		for item, err := range items {
			var a arrival
			if err == nil {
				a, err = read(item)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !list.take(a) {
				return
			}
		}
		list.end()
	}, resourceVersion)
}

// forget drops the generation if no object is left.
func (s *Store[T]) forget() {
	if s.cells.Entries().Len() == 0 {
		s.kin.begin(nil)
	}
}

// Bookmark notes that the content is complete up to resourceVersion.
func (s *Store[T]) Bookmark(resourceVersion string) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.cells.Bookmark(resourceVersion)
}

// AnotherHistory implements [store.Historian], for the informer that the store belongs to.
func (s *Store[T]) AnotherHistory() { s.cells.AnotherHistory() }

var errNil = errors.New("packed: the object is nil")

func (s *Store[T]) put(obj T) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	defer s.kin.borrow()()
	a, err := s.arrival(obj)
	if err != nil {
		return err
	}
	return s.write(a)
}

// write stores an object that has come. If its last state is hot, it is read often.
func (s *Store[T]) write(a arrival) error {
	heats := a.obj != nil && s.isHot(store.Key(a.namespace, a.name))
	c := s.arrived(a)
	err := s.cells.Put(c)
	if heats && err == nil {
		heat(c, a.obj, len(a.document))
	}
	return err
}

func (s *Store[T]) isHot(key string) bool {
	entry, ok := s.cells.Get(key)
	return ok && entry.(*cell).hot.Load() != nil
}

// arrival is an object that comes, before it is packed.
type arrival struct {
	identity
	key      string
	document []byte // the object's bytes in the form of flags
	flags    flags
	obj      store.Object   // nil if it was not decoded
	cell     *cell          // the object, if it is at rest already; all else is zero
	from     *store.Encoded // whose bytes the document is; nil if it is scratch
}

// packed gives the memory of the document to another object, unless that might remember it.
func (k *kin) packed(a arrival) {
	if a.from != nil && !k.plain && a.flags&flagPlain == 0 {
		a.from.Release()
	}
}

// arrival encodes an object. The document is valid until the next call.
func (s *Store[T]) arrival(obj T) (a arrival, err error) { return s.arrivalOf(obj, false) }

// arrivalOf is arrival of an object that may be fleeting: nothing may be remembered of it.
func (s *Store[T]) arrivalOf(obj T, fleeting bool) (a arrival, err error) {
	if pointer.None(obj) {
		return a, errNil
	}
	a = arrival{identity: identityOf(obj), obj: obj}
	if fleeting || s.kin.plain || isSecret(obj) { // no buffer may keep it
		a.document, a.flags, err = s.form.encode(nil, obj)
		a.flags |= flagPlain
	} else {
		a.document, a.flags, err = s.form.encode(s.kin.scratch.document[:0], obj)
		s.kin.scratch.document = a.document
	}
	if err != nil {
		return a, fmt.Errorf("packed: %s: encode: %w", store.KeyOf(obj), err)
	}
	return a, nil
}

// arrived is the cell of an object: the one that the store holds if that is the same state.
func (s *Store[T]) arrived(a arrival) *cell {
	if a.cell != nil {
		return a.cell
	}
	defer s.kin.packed(a)
	_, _, message, _ := cutHead(a.document, a.flags) // a source's bytes have no head
	digest := maphash.Bytes(seed, message)
	var held *cell
	a.key = store.Key(a.namespace, a.name)
	if entry, ok := s.cells.Get(a.key); ok {
		held = entry.(*cell)
		a.key = held.Key() // all states share it
		if held.is(a.identity) && (held.digest() == digest || s.equal(held, a)) {
			return held
		}
	}
	c := s.kin.cell(a, digest, held)
	s.tell(c, a)
	return c
}

// tell tells the indexes of an object that comes. For parts of it alone, nothing is decoded.
func (s *Store[T]) tell(c *cell, a arrival) {
	if a.obj != nil || s.cells.AsksObjects() {
		if a.obj == nil {
			a.obj = s.object(a)
		}
		s.cells.Arrive(c, a.obj.(T))
		return
	}
	if s.cells.AsksParts() {
		s.cells.ArriveParts(c, &excerpt[T]{s, func(use func([]byte, flags) error) error { return use(a.document, a.flags) }, func() T { return s.object(a) }})
	}
}

// equal reports whether an object has come in other bytes than those of the cell, which happens: a
// list and an event write it differently. A server can also change it under its version.
func (s *Store[T]) equal(c *cell, a arrival) bool {
	if a.obj == nil {
		a.obj = s.object(a)
	}
	return content.Equal(s.open(c), a.obj)
}

// object decodes an object that comes.
func (s *Store[T]) object(a arrival) T {
	obj := s.form.new()
	if err := s.form.decode(a.document, a.flags, obj); err != nil {
		panic(fmt.Sprintf("packed: %s: %v", store.Key(a.namespace, a.name), err)) // it was checked
	}
	return obj
}

// open returns the object of a cell. It leaves the hot ones as they are: whoever ranges over a
// collection does not read each object again soon.
func (s *Store[T]) open(entry store.Object) T {
	c := entry.(*cell)
	if hot := c.hot.Load(); hot != nil {
		return hot.read().(T)
	}
	obj := s.form.new()
	s.decode(c, obj)
	return obj
}

// decode decodes a cell into obj, and returns the length of its document.
func (s *Store[T]) decode(c *cell, obj T) (size int) {
	err := c.read(func(document []byte, flags flags) error {
		size = len(document)
		return s.form.decode(document, flags, obj)
	})
	if err != nil { // it was encoded, or checked, when it came
		panic(fmt.Sprintf("packed: %s: %v", store.KeyOf(c), err))
	}
	return size
}

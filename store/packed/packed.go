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

// Store is a [store.Indexer] that keeps its objects as packed bytes. Make one with [New]. Each read
// of an object decodes it, unless it is hot: Get keeps its objects hot for a while, and other calls
// may return the same object, which is read-only. Readers take no lock.
type Store[T store.Object] struct {
	*store.Indexer[T]
	keeper *keeper[T]
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
	k := &keeper[T]{form: form, kin: kin{plain: form.secret}}
	return &Store[T]{store.NewFormed(k, indexes...), k}
}

// LearnNothing lets the store keep each object in its own bytes alone from now on, so that nothing
// of a deleted object is remembered. Secrets are kept so anyway, by their Go type or their kind. It
// is for other objects that must leave no trace, such as the metadata of Secrets.
func (s *Store[T]) LearnNothing() {
	s.keeper.mu.Lock()
	defer s.keeper.mu.Unlock()
	s.keeper.kin = kin{plain: true}
}

// Read decodes the object under key into obj, which is the caller's own. Nothing of obj's earlier
// content is left. It reports whether there is such an object; if not, obj stays as it was.
func (s *Store[T]) Read(key string, obj T) (found bool) {
	entry, ok := s.Entries().Get(key)
	if ok {
		s.keeper.form.reset(obj)
		s.keeper.decode(entry.(*cell), obj)
	}
	return ok
}

// keeper is the form of packed bytes: a [store.Form].
type keeper[T store.Object] struct {
	form form[T]

	mu   sync.Mutex // of kin: held while an object is encoded and packed
	kin  kin
	came arrival // of the write that goes on
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

// Arrive implements [store.Form]. An object that the store already holds in the same bytes, with an
// equal UID and resource version, stays as it is. If the last state is hot, it is read often.
func (k *keeper[T]) Arrive(key string, item, held store.Entry) (entry store.Entry, from store.Reading, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.kin.borrow()()
	a, err := k.arrival(item)
	if err != nil {
		return nil, nil, err
	}
	was, _ := held.(*cell)
	if a.cell != nil {
		if was != nil && k.isSame(was, a.cell) {
			return was, nil, nil
		}
		return a.cell, nil, nil
	}
	a.key = key
	_, _, message, _ := cutHead(a.document, a.flags) // a source's bytes have no head
	digest := maphash.Bytes(seed, message)
	if was != nil && was.is(a.identity) && (was.digest() == digest || k.equal(was, a)) {
		k.kin.packed(a)
		return was, nil, nil
	}
	c := k.kin.cell(a, digest, was)
	if was != nil && a.obj != nil && was.hotObject() != nil {
		heat(c, a.obj, len(a.document))
	}
	k.came = a
	return c, (*arriving[T])(k), nil
}

// packed gives the memory of the document to another object, unless that might remember it.
func (k *kin) packed(a arrival) {
	if a.from != nil && !k.plain && a.flags&flagPlain == 0 {
		a.from.Release()
	}
}

// List is of a [store.Form] that looks at lists: the first objects of a list wait until something
// is learned from them.
func (k *keeper[T]) List(items iter.Seq2[store.Entry, error], held int) iter.Seq2[store.Entry, error] {
	k.Listed(held)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.kin.learns() {
		return items
	}
	return func(yield func(store.Entry, error) bool) {
		list := listing{yield: yield}
		for item, err := range items {
			if err == nil && !list.ends {
				var document []byte
				if document, err = k.document(item); document != nil {
					if list.hold(item, document) && !list.end(k) {
						return
					}
					continue
				}
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
		list.end(k)
	}
}

// Listed is called after a list: the generation goes if no object is left.
func (k *keeper[T]) Listed(held int) {
	if held == 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.kin.begin(nil)
	}
}

// document is what is to be learned from an object; nil if nothing may be, or if it is at rest.
func (k *keeper[T]) document(item store.Entry) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.kin.borrow()()
	a, err := k.arrival(item)
	switch {
	case err != nil, a.cell != nil, a.flags&flagPlain != 0:
		return nil, err
	case a.from != nil:
		return a.document, nil
	}
	return append([]byte{}, a.document...), nil
}

var errNil = errors.New("packed: the object is nil")

// arrival reads an object in any form. The document is valid until the next call.
func (k *keeper[T]) arrival(item store.Entry) (arrival, error) {
	switch item := item.(type) {
	case *cell:
		return arrival{cell: item}, nil
	case *store.Encoded:
		return k.arrivalOfBytes(item)
	}
	return k.arrivalOf(item.(T), false)
}

// arrivalOf encodes an object that may be fleeting: nothing may be remembered of it.
func (k *keeper[T]) arrivalOf(obj T, fleeting bool) (a arrival, err error) {
	if pointer.None(obj) {
		return a, errNil
	}
	a = arrival{identity: identityOf(obj), obj: obj}
	if fleeting || k.kin.plain || isSecret(obj) { // no buffer may keep it
		a.document, a.flags, err = k.form.encode(nil, obj)
		a.flags |= flagPlain
	} else {
		a.document, a.flags, err = k.form.encode(k.kin.scratch.document[:0], obj)
		k.kin.scratch.document = a.document
	}
	if err != nil {
		return a, fmt.Errorf("packed: %s: encode: %w", store.KeyOf(obj), err)
	}
	return a, nil
}

// isSame reports whether two cells, of two stores, are one state.
func (k *keeper[T]) isSame(c, other *cell) bool {
	return c == other || c.is(other.identity()) && (c.digest() == other.digest() || content.Equal(k.Open(c), k.Open(other)))
}

// equal reports whether an object has come in other bytes than those of the cell, which happens: a
// list and an event write it differently. A server can also change it under its version.
func (k *keeper[T]) equal(c *cell, a arrival) bool {
	if a.obj == nil {
		a.obj = k.object(a)
	}
	return content.Equal(k.Open(c), a.obj)
}

// object decodes an object that comes.
func (k *keeper[T]) object(a arrival) T {
	obj := k.form.new()
	if err := k.form.decode(a.document, a.flags, obj); err != nil {
		panic(fmt.Sprintf("packed: %s: %v", store.Key(a.namespace, a.name), err)) // it was checked
	}
	return obj
}

// Open implements [store.Form]. It leaves the hot objects as they are: whoever ranges over a
// collection does not read each object again soon. An object that comes decoded is encoded first,
// as it would be for the store.
func (k *keeper[T]) Open(entry store.Entry) T {
	if e, ok := entry.(*store.Encoded); ok {
		a, err := k.fleeting(e)
		if err != nil { // the store refuses it
			return e.Decoded.(T)
		}
		return k.object(a)
	}
	obj, _ := k.read(entry.(*cell))
	return obj
}

// Get is Open for an object that is read alone, which is kept hot.
func (k *keeper[T]) Get(entry store.Entry) T {
	c := entry.(*cell)
	obj, size := k.read(c)
	if size > 0 {
		heat(c, obj, size)
	}
	return obj
}

// read returns the object of a cell. size is the length of the document that was decoded for it;
// zero of a hot object.
func (k *keeper[T]) read(c *cell) (obj T, size int) {
	if hot := c.hotObject(); hot != nil {
		return hot.(T), 0
	}
	obj = k.form.new()
	return obj, k.decode(c, obj)
}

// decode decodes a cell into obj, and returns the length of its document.
func (k *keeper[T]) decode(c *cell, obj T) (size int) {
	mustRead(c, c.read(func(document []byte, flags flags) error {
		size = len(document)
		return k.form.decode(document, flags, obj)
	}))
	return size
}

package informer

import (
	"errors"
	"fmt"
	"iter"

	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// WithStore keeps the objects in a store of another make, which newStore makes with the indexes of
// [WithIndexes]:
//
//	pods := informer.New(source, informer.WithStore(packed.New[corev1.Pod]))
//
// The store keeps objects as bytes: see package store/packed. Readers and handlers get whole
// objects as ever, and each is decoded when it is read or a handler is called with it. A handler
// that needs an object's key or metadata is cheaper as [Informer.AddMetaHandler]. The source's
// bytes come to the store undecoded if the source is a [listwatch.ListWatch] of a client.
//
// Run fails if the store is of another type than the informer's own. A [Set] uses it for the copies
// of that type, and a [Union] for each member.
func WithStore[T store.Object, S interface{ Base() *store.Indexer[T] }](newStore func(indexes ...store.AnyIndex[T]) S) Option {
	return func(o *options) {
		var base storeMaker[T]
		if newStore != nil {
			base = func(indexes ...store.AnyIndex[T]) *store.Indexer[T] { return newStore(indexes...).Base() }
		}
		o.stores = append(o.stores, base)
	}
}

type storeMaker[T store.Object] func(indexes ...store.AnyIndex[T]) *store.Indexer[T]

// storeOf returns the function of the last [WithStore] of the type, or else that of objects as they
// are. It fails for a store of another type, and without a function.
func storeOf[T store.Object](o options) (last storeMaker[T], err error) {
	last = store.NewIndexer[T]
	for _, each := range o.stores {
		newStore, ok := each.(storeMaker[T])
		switch {
		case ok && newStore == nil:
			err = errors.New("informer: WithStore: the function is nil: give packed.New, for example")
		case ok:
			last = newStore
		case !o.ofSet:
			var want T
			err = fmt.Errorf("informer: WithStore: the store is of another type than the informer's %T", want)
		}
	}
	return last, err
}

// writer is a [journal], or a part of a union, as a reflector writes into it.
type writer interface {
	put(obj store.Entry, missed bool) error
	delete(obj store.Entry) error
	replace(items iter.Seq2[store.Entry, error], resourceVersion func() string) error
	bookmark(resourceVersion string) error
	anotherHistory()
}

// follow makes the reflector that reads source and writes through to. held is what the reflector
// finds there: it hands over bytes if the store keeps bytes. failed is called at each failure of
// the source; it may be nil.
func (i *shared[T]) follow(source listwatch.ListerWatcher[T], held *store.Indexer[T], to writer, failed func()) copier {
	if !held.Entries().KeepsBytes() {
		return reflector.New(observed(source, failed), intake[T]{held, to}, i.options.reflector...)
	}
	var bytes listwatch.ListerWatcher[*store.Encoded]
	if source != nil {
		bytes = encoded(source)
	}
	return reflector.New(observed(bytes, failed), intake[*store.Encoded]{held.Encoded().(holding[*store.Encoded]), to}, i.options.reflector...)
}

func encoded[T store.Object](source listwatch.ListerWatcher[T]) listwatch.ListerWatcher[*store.Encoded] {
	lw, ok := source.(*listwatch.ListWatch[T])
	if !ok {
		lw = listwatch.Intercept(source, nil, nil)
	}
	return lw.Encoded()
}

// takesNameless lets stores take what the fake clients of client-go send.
func takesNameless(source any, stores ...*store.Entries) {
	if adapters.KeepsNameless(source) {
		for _, s := range stores {
			s.KeepNameless()
		}
	}
}

// intake is the [store.Store] of a reflector, whose objects come decoded or as bytes.
type intake[E store.Object] struct {
	holding[E]
	to writer
}

// holding is what a reflector, and its source, ask for objects that are held. Get reads one without
// a snapshot: it is called for each event, and a snapshot would make each write copy its path.
type holding[E store.Object] interface {
	store.Snapshotter[E]
	Get(key string) (E, bool)
}

func (s intake[E]) Add(obj E) error               { return s.to.put(obj, false) }
func (s intake[E]) Update(obj E) error            { return s.to.put(obj, false) }
func (s intake[E]) Delete(obj E) error            { return s.to.delete(obj) }
func (s intake[E]) Bookmark(version string) error { return s.to.bookmark(version) }
func (s intake[E]) AnotherHistory()               { s.to.anotherHistory() }

func (s intake[E]) Replace(items iter.Seq2[E, error], resourceVersion func() string) error {
	return s.to.replace(func(yield func(store.Entry, error) bool) {
		items(func(obj E, err error) bool { return yield(obj, err) })
	}, resourceVersion)
}

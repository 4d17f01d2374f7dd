package informer

import (
	"errors"
	"fmt"
	"iter"

	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// kept is the content of a copy, and its changes.
type kept[T store.Object] interface {
	Snapshot() store.Snapshot[T]
	Get(key string) (T, bool)
	AddIndexes(indexes ...store.AnyIndex[T])
	// follow gives a handler its place, and returns its events; followMeta does so for a handler
	// that opens the objects itself, by open.
	follow(h *handler) iter.Seq[Event[T]]
	followMeta(h *handler) iter.Seq[Event[store.Object]]
	open(obj store.Object) T
	// peek and one return an object with its metadata; one returns any of them, or nil.
	peek(key string) (obj store.Object, ok bool)
	one() store.Object
	versions() versions
}

// WithStore keeps the objects in a store of another make, which newStore makes with the indexes of
// [WithIndexes]:
//
//	pods := informer.New(source, informer.WithStore(packed.New[corev1.Pod]))
//
// The store keeps objects at rest, as bytes: see package store/packed. Readers and handlers get
// whole objects as ever, and each is decoded when it is read or told. A handler that needs an
// object's key or metadata is cheaper as [Informer.AddMetaHandler]. The source's bytes come to the
// store undecoded if the source is a [listwatch.ListWatch] of a client.
//
// Run fails if the store is of another type than the informer's own. A [Set] uses it for the copies
// of that type, and a [Union] for each member.
func WithStore[T store.Object, S interface {
	Get(key string) (T, bool)
	Encoded() store.Store[*store.Encoded]
	Closed() *store.Closed[T]
}](newStore func(indexes ...store.AnyIndex[T]) S) Option {
	return func(o *options) {
		if newStore == nil {
			o.stores = append(o.stores, storeMaker[T](nil))
			return
		}
		o.stores = append(o.stores, storeMaker[T](func(indexes []store.AnyIndex[T]) restingStore[T] {
			s := newStore(indexes...)
			return restingStore[T]{s.Closed(), s.Encoded(), s.Get}
		}))
	}
}

type storeMaker[T store.Object] func(indexes []store.AnyIndex[T]) restingStore[T]

// restingStore is a store of objects at rest.
type restingStore[T store.Object] struct {
	closed  *store.Closed[T]
	encoded store.Store[*store.Encoded]
	get     func(key string) (T, bool)
}

// storeOf returns the function of the last [WithStore] of the type; nil without one.
func storeOf[T store.Object](o options) (last storeMaker[T]) {
	for _, each := range o.stores {
		if newStore, ok := each.(storeMaker[T]); ok {
			last = newStore
		}
	}
	return last
}

// checkStores returns an error for a store of another type, and without a function.
func checkStores[T store.Object](o options) error {
	for _, each := range o.stores {
		newStore, ok := each.(storeMaker[T])
		switch {
		case ok && newStore == nil:
			return errors.New("informer: WithStore: the function is nil: give packed.New, for example")
		case !ok && !o.ofSet:
			var want T
			return fmt.Errorf("informer: WithStore: the store is of another type than the informer's %T", want)
		}
	}
	return nil
}

// atRest keeps the objects in a store of another make.
func (i *shared[T]) atRest(newStore storeMaker[T]) {
	r := i.newResting(newStore)
	if adapters.KeepsNameless(i.source) {
		r.objects.KeepNameless()
	}
	var source listwatch.ListerWatcher[*store.Encoded]
	if i.source != nil {
		source = encoded(i.source)
	}
	writer := reflector.New(source, r.store.encoded, i.options.reflector...)
	i.copier, i.check = writer, i.verify
	i.complete = func() (string, string) { return r.objects.ResourceVersion(), "the store" }
}

// newResting makes the store, and the journal of its entries. The ring has entries.
func (i *shared[T]) newResting(newStore storeMaker[T]) *resting[T] {
	r := &resting[T]{store: newStore(i.indexes)}
	r.store.closed.Through(func(entries *store.Indexer[store.Object]) writer {
		r.journal = journalOf(max(1, i.options.ring), entries)
		return r.journal
	})
	i.kept, i.ring = r, r.ring
	return r
}

// writer is a store that is told of bookmarks.
type writer = interface {
	store.Store[store.Object]
	store.Bookmarker
}

// atRest keeps each member's objects in a store of its own. The union has the entries of all, which
// any store of the type can open.
func (u *Union[T]) atRest(newStore storeMaker[T]) {
	r := u.newResting(newStore)
	all := &members[store.Object]{journal: r.journal}
	// Members write into the journal, not through the store: that must let its last snapshot go.
	all.wrote = func() { _ = r.store.closed.Bookmark("") }
	all.same = func(held, entry store.Object) bool {
		return held != entry && sameVersion(held, entry) && content.Equal(r.open(held), r.open(entry))
	}
	unite(u, all, func(m *member[store.Object], source listwatch.ListerWatcher[T]) copier {
		own := newStore(nil)
		own.closed.Through(func(entries *store.Indexer[store.Object]) writer {
			m.held = entries
			return &part[store.Object]{member: m}
		})
		return reflector.New(observed(encoded(source), m.failed), own.encoded, u.options.reflector...)
	})
}

func encoded[T store.Object](source listwatch.ListerWatcher[T]) listwatch.ListerWatcher[*store.Encoded] {
	lw, ok := source.(*listwatch.ListWatch[T])
	if !ok {
		lw = listwatch.Intercept(source, nil, nil)
	}
	return lw.Encoded()
}

// resting is a copy at rest: a journal of entries. Readers and handlers get them opened.
type resting[T store.Object] struct {
	*journal[store.Object]
	store restingStore[T]
}

func (r *resting[T]) Snapshot() store.Snapshot[T]             { return r.store.closed.Snapshot() }
func (r *resting[T]) Get(key string) (T, bool)                { return r.store.get(key) }
func (r *resting[T]) AddIndexes(indexes ...store.AnyIndex[T]) { r.store.closed.AddIndexes(indexes...) }

func (r *resting[T]) open(entry store.Object) T { return r.store.closed.Open(entry) }

func (r *resting[T]) follow(h *handler) iter.Seq[Event[T]] {
	events := r.ring.follow(h)
	return func(yield func(Event[T]) bool) {
		events(func(e Event[store.Object]) bool { return yield(recast(e, r.open)) })
	}
}

// recast is an event with its objects in another form, which is asked for once for each.
func recast[T, E store.Object](e Event[E], form func(E) T) Event[T] {
	out := Event[T]{Key: e.Key, Type: e.Type, Initial: e.Initial, Missed: e.Missed, Final: e.Final}
	if !pointer.None(e.New) {
		out.New = form(e.New)
	}
	switch {
	case e.Type == Redelivered:
		out.Old = out.New
	case !pointer.None(e.Old):
		out.Old = form(e.Old)
	}
	return out
}

// The objects of a journal are opened as they are.

func (j *journal[T]) AddIndexes(indexes ...store.AnyIndex[T]) { j.objects.AddIndexes(indexes...) }

func (j *journal[T]) open(obj store.Object) T { return obj.(T) }

func (j *journal[T]) follow(h *handler) iter.Seq[Event[T]] { return j.ring.follow(h) }

func (j *journal[T]) followMeta(h *handler) iter.Seq[Event[store.Object]] {
	events := j.ring.follow(h)
	return func(yield func(Event[store.Object]) bool) {
		events(func(e Event[T]) bool {
			return yield(recast(e, func(obj T) store.Object { return obj }))
		})
	}
}

func (j *journal[T]) peek(key string) (store.Object, bool) {
	obj, ok := j.objects.Get(key)
	return obj, ok
}

func (j *journal[T]) one() store.Object {
	for _, obj := range j.objects.Snapshot().All() {
		return obj
	}
	return nil
}

func (j *journal[T]) versions() versions { return versionsOf(j.objects.Snapshot()) }

package listwatch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/store"
)

// Project reads a collection of T as a collection of U: project makes the U, once for each version
// of an object. U may be T, a smaller API type, or a type of the program's own with metadata and
// DeepCopyObject.
//
// Parts of the result that are as the source sent them share memory with other objects again. Once
// returned, neither project nor a reader may write into the result.
//
// project must keep name, namespace, UID and resource version: they identify held objects. If it
// does not, or returns nil, the object comes as a *[DecodeError]. Its argument is a copy: project
// may write into it, and keep parts of it. With [ReadOnly], the argument and its parts are shared
// with other objects, and must not be modified.
//
// project is called on the goroutine that ranges over the list or watch, and must not block.
// Several lists and watches may run at once. If source has the method Holding, as [ListWatch] has,
// an object that the reader holds is neither decoded nor projected again.
//
// Project panics if the source or the function is nil.
func Project[T, U store.Object](source ListerWatcher[T], project func(T) U, optionList ...ReaderOption) *ListWatch[U] {
	switch {
	case null.Is(source):
		panic(fmt.Sprintf("listwatch: Project: the source is nil (%T)", source))
	case project == nil:
		panic("listwatch: Project: the function is nil")
	}
	readOnly := isReadOnly("Project", optionList)
	if decoding, ok := source.(*ListWatch[T]); ok && decoding.passing != nil {
		source = decoding.passing()
	}
	p := projection[T, U]{source: source, project: project, copier: copierFor(source, readOnly)}
	lw := &ListWatch[U]{list: p.list, watch: p.watch, private: !readOnly && !p.copier.needed}
	lw.collection, lw.noWatchList, lw.nameless = collectionOf(source), !watchlist.Supported(source), adapters.KeepsNameless(source)
	if decoding, ok := source.(*ListWatch[T]); ok {
		lw.sharing, lw.origin, lw.metadata = decoding.sharing, decoding.origin, decoding.metadata
		if decoding.lookup != nil {
			lw.lookup = func(ctx context.Context, namespace, name string) List[U] {
				return p.converted(decoding.lookup(ctx, namespace, name), func(obj T, neighbour U) (U, error) { return p.convert("list", obj, neighbour) })
			}
		}
	}
	if holding(source) != nil {
		lw.unshared = func() *ListWatch[U] { return Project(unshared(source), project, optionList...) }
		lw.holding = func(held heldCopy[U]) ListerWatcher[U] {
			p := p
			p.held = &held
			out := *lw
			out.list, out.watch, out.holding = p.list, p.watch, nil
			return &out
		}
	}
	return lw
}

type projection[T, U store.Object] struct {
	source  ListerWatcher[T]
	project func(T) U
	copier  copier[T]
	held    *heldCopy[U] // nil if the reader's copy is unknown
}

var errProjected = errors.New("the projection must keep name, namespace, UID and resource version")

func (p projection[T, U]) list(ctx context.Context, request metav1.ListOptions) List[U] {
	source, convert := p.begin("list")
	return p.converted(source.List(ctx, request), convert)
}

func (p projection[T, U]) converted(list List[T], convert func(obj T, neighbour U) (U, error)) List[U] {
	return List[U]{Meta: list.Meta, Items: func(yield func(U, error) bool) {
		var before U
		for obj, err := range list.Items {
			var projected U
			if err == nil {
				projected, err = convert(obj, before)
			}
			before = projected
			if !yield(projected, err) {
				return
			}
		}
	}}
}

func (p projection[T, U]) watch(ctx context.Context, request metav1.ListOptions) iter.Seq2[Event[U], error] {
	source, convert := p.begin("watch")
	return func(yield func(Event[U], error) bool) {
		var none, before U
		initial := watchlist.Asked(request)
		for event, err := range source.Watch(ctx, request) {
			out := Event[U]{
				Type: event.Type, ResourceVersion: event.ResourceVersion, InitialEventsEnd: event.InitialEventsEnd, kind: event.kind,
			}
			if err == nil && !pointer.None(event.Object) {
				out.Object, err = convert(event.Object, before)
				if err != nil {
					err.(*DecodeError).Event = string(event.Type)
					out = Event[U]{}
				}
			}
			if before = none; initial {
				before, initial = out.Object, !event.InitialEventsEnd
			}
			if !yield(out, err) {
				return
			}
		}
	}
}

// begin prepares one list or watch. If the reader's copy is known, the source gets a stand-in for a
// held U: a T with its identity. If the source yields the stand-in, the held U is the result.
//
// convert gets the object's neighbour besides, if there is one, whose memory the result may share.
func (p projection[T, U]) begin(op string) (source ListerWatcher[T], convert func(obj T, neighbour U) (U, error)) {
	if p.held == nil {
		return p.source, func(obj T, neighbour U) (U, error) { return p.convert(op, obj, neighbour) }
	}
	standIn := standInFor[T]() // of the last look-up
	var meant U
	waiting := map[any]U{} // the held objects of the stand-ins that the source has not yielded
	var spare []T
	find := func(key string) (_ T, kept any, found bool) {
		if meant, kept, found = p.held.get(key); !found {
			var none T
			return none, nil, false
		}
		standIn.SetUID(meant.GetUID())
		standIn.SetResourceVersion(meant.GetResourceVersion())
		return standIn, kept, true
	}
	// Items that are yielded late wait in the source, each for its turn.
	own := func(found T) (stays T) {
		if n := len(spare); n > 0 {
			stays, spare = spare[n-1], spare[:n-1]
		} else {
			stays = standInFor[T]()
		}
		stays.SetUID(found.GetUID())
		stays.SetResourceVersion(found.GetResourceVersion())
		if waiting[stays] = meant; p.held.own != nil {
			waiting[stays] = p.held.own(meant)
		}
		return stays
	}
	source = holding(p.source)(heldCopy[T]{digests: p.held.digests, get: find, own: own})
	return source, func(obj T, neighbour U) (U, error) {
		if held, ok := waiting[obj]; ok {
			delete(waiting, obj)
			spare = append(spare, obj)
			return held, nil
		}
		projected, err := p.convert(op, obj, neighbour)
		if err == nil {
			projected = p.settled(obj, projected)
		}
		return projected, err
	}
}

// standInFor returns an empty object. An interface cannot say which type its objects have, but any
// type with metadata stands in.
func standInFor[T store.Object]() T {
	if of := reflect.TypeFor[T](); of.Kind() == reflect.Pointer {
		return reflect.New(of.Elem()).Interface().(T)
	}
	return any(&metav1.PartialObjectMetadata{}).(T)
}

// settled returns projected, or the held object if the two are equal.
func (p projection[T, U]) settled(obj T, projected U) U {
	if p.held.own == nil {
		held, _, found := p.held.get(store.KeyOf(projected))
		if found && p.copier.needed {
			content.Share(projected, held)
		}
		if found && held.GetUID() == projected.GetUID() && held.GetResourceVersion() == projected.GetResourceVersion() &&
			content.Equal(held, projected) {
			projected = held
		}
	}
	p.held.digests.became(p.held.digests.entry(obj.GetUID()), obj, projected)
	return projected
}

func (p projection[T, U]) convert(op string, obj T, neighbour U) (U, error) {
	var none U
	projected := p.project(p.copier.copied(obj))
	if pointer.None(projected) || projected.GetName() != obj.GetName() || projected.GetNamespace() != obj.GetNamespace() ||
		projected.GetUID() != obj.GetUID() || projected.GetResourceVersion() != obj.GetResourceVersion() {
		return none, &DecodeError{Op: op, Object: store.KeyOf(obj), Err: errProjected}
	}
	if p.copier.needed { // else it shares already, or has nothing to share
		content.Share(projected, obj)
		content.Share(projected, neighbour)
	}
	return projected, nil
}

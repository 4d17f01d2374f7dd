package listwatch

import (
	"context"
	"fmt"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/store"
)

// Holder is a [ListerWatcher] that does not decode objects that its reader already holds. A
// [ListWatch] is a Holder. A reflector finds the ability by type assertion.
type Holder[T store.Object] interface {
	// Holding returns the same source for a reader that has a copy. held returns the copy's object
	// under a key, "namespace/name"; [ListWatch.Holding] has the rules. Holding does not block.
	Holding(held func(key string) (T, bool)) ListerWatcher[T]
}

// Intercept puts functions between a source and its reader, to observe, count or change lists and
// events. list gets each [List] with its request, and returns the reader's list; watch does so with
// the events of each watch. A nil function changes nothing.
//
// Both are called once per request, on the goroutine that makes it, and several requests may be
// made at once. Neither blocks: they return sequences, which do their work when the reader ranges
// over them. Objects stay read-only and shared. To replace objects, use [Project].
//
// The result supports watch lists if the source does, and is a [Holder] if the source is: objects
// that the reader holds pass the functions, too. Intercept panics if the source is nil.
func Intercept[T store.Object](
	source ListerWatcher[T],
	list func(request metav1.ListOptions, list List[T]) List[T],
	watch func(request metav1.ListOptions, events iter.Seq2[Event[T], error]) iter.Seq2[Event[T], error],
) *ListWatch[T] {
	if null.Is(source) {
		panic(fmt.Sprintf("listwatch: Intercept: the source is nil (%T)", source))
	}
	// Not private: the functions may keep the objects.
	out := &ListWatch[T]{list: source.List, watch: source.Watch, collection: collectionOf(source)}
	out.noWatchList, out.nameless = !watchlist.Supported(source), adapters.KeepsNameless(source)
	if list != nil {
		out.list = func(ctx context.Context, request metav1.ListOptions) List[T] {
			return list(request, source.List(ctx, request))
		}
	}
	if watch != nil {
		out.watch = func(ctx context.Context, request metav1.ListOptions) iter.Seq2[Event[T], error] {
			return watch(request, source.Watch(ctx, request))
		}
	}
	if known, ok := source.(*ListWatch[T]); ok {
		out.sharing, out.objects = known.sharing, known.objects
	}
	if hold := holding(source); hold != nil {
		out.unshared = func() *ListWatch[T] { return Intercept(unshared(source), list, watch) }
		out.holding = func(held heldCopy[T]) ListerWatcher[T] { return Intercept(hold(held), list, watch) }
	}
	return out
}

// holding returns the function that tells the source of the reader's copy; nil if the source
// decodes everything.
func holding[T store.Object](source ListerWatcher[T]) func(heldCopy[T]) ListerWatcher[T] {
	if known, ok := source.(*ListWatch[T]); ok {
		return known.holding
	}
	holder, ok := source.(Holder[T])
	if !ok {
		return nil
	}
	return func(held heldCopy[T]) ListerWatcher[T] {
		return holder.Holding(func(key string) (T, bool) {
			obj, _, found := held.get(key)
			return obj, found
		})
	}
}

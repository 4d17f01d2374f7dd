package stream

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Sink takes in the events of a stream, in order. An error ends the stream.
type Sink[T store.Object] interface {
	// Item is an object of the state. The event of a LIST has no size.
	Item(event listwatch.Event[T]) error
	// State ends the state, and names its version.
	State(version string) error
	// Change is a change after the state, or a bookmark.
	Change(event listwatch.Event[T]) error
}

// WatchListTo reads the state and the changes by one request, until the watch ends.
func WatchListTo[T store.Object](ctx context.Context, source listwatch.ListerWatcher[T], request metav1.ListOptions, to Sink[T]) error {
	initial := true
	for event, err := range source.Watch(ctx, request) {
		part := Progress
		switch {
		case err != nil:
			return err
		case !initial:
			err = to.Change(event)
		default:
			part, err = PartOf(event)
		}
		switch {
		case err != nil:
		case part == Object:
			err = to.Item(event)
		case part == End:
			initial = false
			err = to.State(event.ResourceVersion)
		}
		if err != nil {
			return err
		}
	}
	if initial {
		return ErrIncomplete
	}
	return nil
}

// ListAndWatchTo is WatchListTo for servers without watch lists: list selects the LIST, and watch
// makes the request that follows the version of its state.
func ListAndWatchTo[T store.Object](ctx context.Context, source listwatch.ListerWatcher[T], list metav1.ListOptions,
	watch func(version string) metav1.ListOptions, to Sink[T],
) error {
	all := source.List(ctx, list)
	for obj, err := range all.Items {
		if err == nil {
			err = to.Item(listwatch.Event[T]{Object: obj})
		}
		if err != nil {
			return err
		}
	}
	version := all.Meta().ResourceVersion
	if err := to.State(version); err != nil {
		return err
	}
	for event, err := range source.Watch(ctx, watch(version)) {
		if err == nil {
			err = to.Change(event)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

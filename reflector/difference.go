package reflector

import (
	"fmt"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// missed is what a server tells in place of the changes that it has forgotten: the states of
// all objects that may have changed. See [WithDifferences].
type missed[T store.Object] struct {
	now map[string]T // by key; the zero T: there is none
}

// collect takes in an event of a difference, and hands the whole to the store when it has come.
// Until then the position stays: a watch that breaks off goes on from before the difference.
func (r *Reflector[T]) collect(d *missed[T], p *position, w *openWatch[T], event listwatch.Event[T], err error) (*missed[T], error) {
	if err != nil { // an object that cannot be decoded, too: nobody knows what has become of it
		return d, causeOf(w.ctx, err)
	}
	r.contact(w.guard, event.Type != watch.Bookmark)
	switch {
	case event.DifferenceBegins:
		return &missed[T]{now: map[string]T{}}, nil
	case d == nil:
		return nil, apierrors.NewResourceExpired("a difference ends that has not begun")
	case event.DifferenceEnds:
		return nil, r.apply(d, p, w, event.ResourceVersion)
	case event.Type == watch.Bookmark:
	case event.Type == watch.Deleted:
		var none T
		d.now[store.KeyOf(event.Object)] = none
	default:
		d.now[store.KeyOf(event.Object)] = event.Object
	}
	return d, nil
}

// apply replaces the content by what the difference makes of it.
func (r *Reflector[T]) apply(d *missed[T], p *position, w *openWatch[T], version string) error {
	held, ok := r.store.(store.Snapshotter[T])
	if !ok {
		return apierrors.NewResourceExpired(fmt.Sprintf("the server has forgotten changes, and a %T cannot take a difference", r.store))
	}
	read := &listRead{version: version}
	o := r.replace(d.upon(held.Snapshot()), read, w.guard)
	if !o.complete {
		return o.err
	}
	p.at, p.before = version, version
	r.status.change(func(s *Status) { s.reached(version, time.Now()) })
	r.log.V(2).Info("The server told the difference to what it had forgotten", "objects", len(d.now), "resourceVersion", version)
	return nil
}

// upon yields the state that the difference makes of another.
func (d *missed[T]) upon(state store.Snapshot[T]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for key, obj := range state.All() {
			if _, changed := d.now[key]; !changed && !yield(obj, nil) {
				return
			}
		}
		for _, obj := range d.now {
			if !pointer.None(obj) && !yield(obj, nil) {
				return
			}
		}
	}
}

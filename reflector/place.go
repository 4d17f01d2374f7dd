package reflector

import (
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/rv"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// position is how far a watch has come. A later watch is resumed from at.
type position struct {
	at string
	// before is the version before at. An event between the two has not been in this stream, so
	// that the server has gone on below at.
	before string
	// unordered: the list came without a version, so that versions say nothing of the stream's
	// order.
	unordered bool
}

// verdict is the fate of an event.
type verdict uint8

const (
	// placed: the event is in order, or its object says where it belongs.
	placed verdict = iota
	// displaced: the event is written, and its version contradicts the stream's. A relist must
	// confirm it.
	displaced
	// replayed: the store holds a newer state of the object. The event is not written, and a relist
	// must confirm that it was a replay.
	replayed
	// unplaced: nothing says where the event belongs. It is not written, and a relist must replace
	// it.
	unplaced
	// repeated: the store agrees with the event already.
	repeated
)

// place judges an event and moves the position. A stream in order asks the store nothing; the
// object that the store holds decides about an event that is older than the position (invariant 1).
func (r *Reflector[T]) place(p *position, event listwatch.Event[T]) verdict {
	version := event.ResourceVersion
	bookmark := event.Type == watch.Bookmark
	if version == "" && !bookmark {
		version = event.Object.GetResourceVersion()
	}
	if version == "" {
		return placed
	}
	order, comparable := store.Version(p.at).Compare(store.Version(version))
	switch {
	case !comparable || p.unordered:
		p.at, p.before = version, version
		return placed
	case order < 0 && rv.Leaps(p.at, version):
		// And the position stays: nothing could be watched from a version of the future.
		return displaced
	case order <= 0 && bookmark: // all events up to there have come
		p.at, p.before = version, version
		return placed
	case order < 0:
		p.at, p.before = version, p.at
		return placed
	case order == 0:
		return placed
	case bookmark:
		return repeated
	}
	return r.placeByObject(p, event, version)
}

// placeByObject judges an event that is older than the position.
func (r *Reflector[T]) placeByObject(p *position, event listwatch.Event[T], version string) verdict {
	// Below the newest version, which was from the future then.
	goesOn := store.Version(p.before).Before(store.Version(version))
	if r.held != nil {
		held, ok := r.held(store.KeyOf(event.Object))
		order := -1
		if ok {
			order, _ = store.VersionOf(held).Compare(store.Version(version))
		}
		switch {
		case !ok && event.Type == watch.Deleted && !goesOn:
			return repeated
		case !ok && !goesOn:
			return unplaced
		case ok && order > 0:
			return replayed
		case ok && order == 0 && held.GetResourceVersion() == version:
			return placed // the state that is held, or its deletion
		}
	}
	if goesOn {
		p.at = version
	}
	return displaced
}

// misplaced takes in an event that is not placed, and reports whether it is written all the same.
func (r *Reflector[T]) misplaced(where verdict, event listwatch.Event[T]) (write bool, err error) {
	switch where {
	case repeated:
		return false, nil
	case unplaced:
		return false, stream.ErrUnplaced
	}
	// The relist may wait for the next bookmark: no object is missing.
	r.machine.healing.lost(Unplaced, time.Now())
	key, _ := lossOf(event, stream.ErrUnplaced)
	r.skipped(stream.ErrUnplaced, key, false)
	return where == displaced && event.Type != watch.Bookmark, nil
}

package informer

import (
	"fmt"

	"github.com/tributary-go/tributary/store"
)

// Event is one change of one object, as one handler sees it. For each key, Old is the state that
// the handler was told last. So a handler that applies its events to a map of its own has the
// content of the store.
type Event[T store.Entry] struct {
	// Key is "namespace/name", or "name" in cluster scope, as [store.Key] makes it.
	Key string
	// Old is the object before: nil in Added, the last state in Deleted. With Final, it comes from
	// the server's DELETED event and is newer than the state told last; otherwise it is the state
	// told last. Objects are shared and read-only.
	Old T
	// New is the object now: nil in Deleted, never nil otherwise.
	New  T
	Type EventType
	// Initial marks the handler's own initial list: the objects that existed when it began.
	Initial bool
	// Missed marks an event of a difference between two states, after a relist or because the
	// handler fell behind. An update may then stand for several, and events of different objects
	// have no order.
	Missed bool
	// Final marks a deletion that the server told: Old is the object's final state. A handler that
	// fell behind is told the final state as well, with Missed.
	Final bool
}

// Object is New, or the last state of a deleted object. It is never nil.
func (e Event[T]) Object() T {
	if e.Type == Deleted {
		return e.Old
	}
	return e.New
}

// An informer has events of entries, in whatever form the store has given them, and its states are
// of entries, too. They are opened for the handler that is called with them.
type (
	event    = Event[store.Entry]
	snapshot = store.Snapshot[store.Entry]
)

// opening calls handle with events whose objects open opens; nil without handle.
func opening[T store.Entry](handle func(Event[T]), open func(store.Entry) T) func(event) {
	if handle == nil {
		return nil
	}
	return func(e event) { handle(opened(e, open)) }
}

// opened is an event with its objects opened, each once.
func opened[T store.Entry](e event, open func(store.Entry) T) Event[T] {
	out := Event[T]{Key: e.Key, Type: e.Type, Initial: e.Initial, Missed: e.Missed, Final: e.Final}
	if e.New != nil {
		out.New = open(e.New)
	}
	switch {
	case e.Type == Redelivered:
		out.Old = out.New
	case e.Old != nil:
		out.Old = open(e.Old)
	}
	return out
}

// EventType is the kind of a change.
type EventType uint8

// The types. An object that was deleted and created again under its key is Deleted and then Added:
// its UID tells.
const (
	// Added is an object that the handler does not know: it was never told of it, or was told of
	// its deletion.
	Added EventType = iota + 1
	// Updated is a newer version of an object.
	Updated
	// Deleted is an object that no longer exists, or no longer belongs to the collection.
	Deleted
	// Redelivered is an unchanged object, told again by [WithRedelivery]; Old and New are the same.
	Redelivered
)

// String returns the type in lower case, such as "added".
func (t EventType) String() string {
	switch t {
	case Added:
		return "added"
	case Updated:
		return "updated"
	case Deleted:
		return "deleted"
	case Redelivered:
		return "redelivered"
	}
	return fmt.Sprintf("event type %d", uint8(t))
}

package informer

import (
	"fmt"

	"github.com/tributary-go/tributary/store"
)

// Event is one change of one object, as one handler sees it. For each key, Old is what the handler was last told, so
// that a handler which applies its events to a map of its own has what the store holds.
type Event[T store.Object] struct {
	// Key is "namespace/name", or "name" in cluster scope, as [store.Key] makes it.
	Key string
	// Old is the object before: nil in Added, the last state in Deleted. That is the object of the server's DELETED
	// event, newer than what was last told; with Missed, it is what was last told. Objects are shared and read-only.
	Old T
	// New is the object now: nil in Deleted, never nil otherwise.
	New T
	// Type is what happened.
	Type EventType
	// Initial marks the handler's own initial list: what was there when it began.
	Initial bool
	// Missed says that the event was inferred from two states, since the server could not say what happened between
	// them (a relist) or the handler fell behind: an update may stand for several, and a deletion's final state is
	// not known.
	Missed bool
}

// Object is New, or the last state of a deleted object. It is never nil.
func (e Event[T]) Object() T {
	if e.Type == Deleted {
		return e.Old
	}
	return e.New
}

// EventType is what happened to an object.
type EventType uint8

// The types. An object that was deleted and created again under its key, which its UID tells, is Deleted and Added.
const (
	// Added is an object that the handler was not told of, or not since it was deleted.
	Added EventType = iota + 1
	// Updated is a newer version of an object.
	Updated
	// Deleted is an object that is gone, or that no longer belongs to the collection.
	Deleted
	// Redelivered is an object that has not changed, told again by [WithRedelivery]; Old and New are the same.
	Redelivered
)

// String is the type in lower case, such as "added".
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

package informer

import (
	"github.com/tributary-go/tributary/reflector"
)

// Status is the health of an informer at one moment.
type Status struct {
	// Status is the reflector's: the health of the copy.
	reflector.Status
	// Objects is the number of objects held.
	Objects int
	// Handlers has one entry for each handler and each running loop over Events, in the order of
	// their addition.
	Handlers []HandlerStatus
	// Drift is the result of the last successful verification; its At is zero if there was none.
	// DriftErr is the error of the last verification; nil if it succeeded.
	Drift    Drift
	DriftErr error
}

// HandlerStatus is the health of a handler at one moment.
type HandlerStatus struct {
	// Name is the name of [WithName]. Without one, Unnamed is true and Name is "handler-" and a
	// number.
	Name    string
	Unnamed bool
	// Synced says that the handler has returned from its whole initial list.
	Synced bool
	// Lag is how far the handler is behind.
	Lag Lag
	// Delivered counts the events told, in whole batches.
	Delivered uint64
	// Differences counts how often the handler fell behind the ring and was told a difference.
	Differences uint64
	// Incomplete counts the differences from which short lives are missing: more objects were
	// deleted while the handler was behind than are kept for it. See the package's guarantees.
	Incomplete uint64
	// Err is the *[PanicError] with which the handler ended; nil if it did not panic.
	Err error
}

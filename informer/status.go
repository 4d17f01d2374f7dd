package informer

import (
	"time"

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
	// Err is the *[PanicError] with which the handler ended; nil if it did not panic.
	Err error
}

// Metrics receives an informer's measurements. Its methods are called on the handlers' goroutines,
// several at a time, and must not block. A handler that hangs measures nothing: sample
// [Informer.Status] for its lag.
type Metrics interface {
	// Delivered is called when a handler has returned from a batch of events.
	Delivered(DeliveryStats)
}

// DeliveryStats is a batch of events told to one handler.
type DeliveryStats struct {
	// Handler is the handler's name.
	Handler string
	// Events is the number of events; Duration is the handler's time for them.
	Events   int
	Duration time.Duration
	// Difference says that the handler had fallen behind the ring, so the events are a difference.
	Difference bool
	// Lag is the handler's lag after the batch.
	Lag Lag
}

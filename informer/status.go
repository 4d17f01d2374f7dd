package informer

import (
	"time"

	"github.com/tributary-go/tributary/reflector"
)

// Status is the health of an informer at one moment.
type Status struct {
	// Status is that of the reflector: the health of the copy.
	reflector.Status
	// Objects is the number of objects held.
	Objects int
	// Handlers has one entry for each handler and each running loop over Events, in the order in which they came.
	Handlers []HandlerStatus
	// Drift is the result of the last verification that had one; its At is zero where there was none. DriftErr is why
	// the last verification had none; nil when it had.
	Drift    Drift
	DriftErr error
}

// HandlerStatus is the health of a handler at one moment.
type HandlerStatus struct {
	// Name is the name of [WithName]; Unnamed says that there was none, and the name is "handler-" and a number.
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
	// Err is the *[PanicError] with which the handler ended; nil while all is well.
	Err error
}

// Metrics receives what the informer measures. Methods are called on the handlers' goroutines, several at a time, and
// must not block. A handler that hangs measures nothing: sample [Informer.Status] for its lag.
type Metrics interface {
	// Delivered is called when a handler has returned from a batch of events.
	Delivered(DeliveryStats)
}

// DeliveryStats is a batch of events told to one handler.
type DeliveryStats struct {
	// Handler is the handler's name.
	Handler string
	// Events is how many there were; Duration how long the handler took for them.
	Events   int
	Duration time.Duration
	// Difference says that the handler had fallen behind the ring, and the events are a difference.
	Difference bool
	// Lag is what had come in the meantime.
	Lag Lag
}

package reflector

import "time"

// Metrics receives a reflector's measurements, on the goroutine of Run: methods must not block.
// Label values are the texts of [Class], so their number is bounded.
type Metrics interface {
	// ListEnded is called for each list, whether it completed or not.
	ListEnded(ListStats)
	// WatchEnded is called for each watch.
	WatchEnded(WatchStats)
}

// ListStats is one list: a LIST with all its pages, or the initial part of a watch list.
type ListStats struct {
	// Cause is why the list was made: [OK] for the first one, else the class of the error, or of
	// the end of a watch, that made it necessary.
	Cause Class
	// WatchList: it was a watch that sends the state first.
	WatchList bool
	// Class is how it ended; [OK] when the store took it.
	Class    Class
	Duration time.Duration
	Items    int
}

// WatchStats is one watch.
type WatchStats struct {
	// Class is how it ended; [Short] is one that brought nothing and ended at once.
	Class    Class
	Duration time.Duration
	Events   int
}

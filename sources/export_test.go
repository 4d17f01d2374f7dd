package sources

import "time"

// Ticks makes a source that works like the kubelet's take these ticks for its period, so that a test decides when it is
// over.
func Ticks(ticks <-chan time.Time) SourceOption {
	return func(o *sourceOptions) { o.ticks = ticks }
}

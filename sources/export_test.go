package sources

import "time"

// Ticks makes a source that works like the kubelet's take these ticks for its period, so that a test decides when it is
// over.
func Ticks(ticks <-chan time.Time) SourceOption {
	return func(o *sourceOptions) { o.ticks = ticks }
}

// SourceOf is the source that an option adds.
func SourceOf(option Option) Source {
	s := &Sources{}
	option(s)
	return s.feeds[0].source
}

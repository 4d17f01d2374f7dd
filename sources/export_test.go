package sources

import (
	"time"

	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/static"
)

// Ticks makes a source that works like the kubelet's take these ticks for its period, so that a test decides when it is
// over.
func Ticks(ticks <-chan time.Time) static.Option {
	return func(s *access.Settings) { s.Ticks = ticks }
}

// SourceOf is the source that an option adds.
func SourceOf(option Option) Source {
	s := &Sources{}
	option(s)
	return s.feeds[0].source
}

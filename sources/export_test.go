package sources

import (
	"time"

	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/static"
)

// Ticks makes a source that works like the kubelet's take these ticks for its period, so that a
// test decides when it is over.
func Ticks(ticks <-chan time.Time) static.Option {
	return func(s *access.Settings) { s.Ticks = ticks }
}

// SourceOf is the source of an input.
func SourceOf(input Input) Source { return input.source }

// Package difference is how a reader permits differences, and how a server marks them. A difference
// is told by a watch cache to a watch that has fallen out of its window, in place of a 410.
//
// It stands between two bookmarks: each object that may have changed is Added in its present state,
// or Deleted. The reader may hold some of them in that state already, or may never have heard of
// them. A deleted object has its name and namespace alone. The versions in between are not those of
// a history: a reader must take the difference as a whole, and cannot resume a watch within it.
package difference

import "context"

const (
	// Parameter of a watch is "true" if it permits differences.
	Parameter = "differences"
	// Annotation of a bookmark is Begins or Ends.
	Annotation = "tributary-go.github.io/difference"
	// Begins marks the bookmark before a difference, at a version that was told before.
	Begins = "begins"
	// Ends marks the bookmark after a difference, at the version of its state.
	Ends = "ends"
)

type permitted struct{}

// Permit makes a context in which a watch permits differences.
func Permit(ctx context.Context) context.Context { return context.WithValue(ctx, permitted{}, true) }

// Permitted reports whether a watch permits differences.
func Permitted(ctx context.Context) bool { return ctx.Value(permitted{}) != nil }

package watchcache

import (
	"cmp"
	"math"
	"slices"

	"github.com/tributary-go/tributary/store"
)

// gap is the time that a Replace has skipped, from the version before to the list's version. The
// states in between are unknown. A client that comes with such a version, from another server, may
// hold objects of which no change tells.
//
// A client that is cut off among the changes of a gap goes on from the version that it was told
// last, perhaps on another server. Changes in the order of their versions survive that. A loss does
// not: the version of a deletion is unknown, and the next server may never tell it. So a loss is
// told only if it is all that a selection sees of the gap, see [tellable]. Otherwise the watcher
// gets a 410 in place of the gap's first change.
type gap struct {
	before, to uint64
	untold     bool // to watchers of everything; see [history.tellable] for others
}

func (g *gap) holds(version uint64) bool { return version > g.before && version < g.to }

// tellable reports whether changes, which are all that a selection sees of a gap, can be told.
func tellable[T store.Object](changes []seen[T]) bool {
	return len(changes) < 2 || !slices.ContainsFunc(changes, seen[T].loses)
}

// loses reports whether the version of a change in a gap is unknown: the object has gone, or its
// content has changed under a version that watchers had passed.
func (c seen[T]) loses() bool { return c.as == departs || versionOf(c.now) <= c.gap.before }

// changesIn are the changes from the state before a gap to the state after it, ordered by version.
// A deletion is at the gap's last version, the newest that it can be at. A deletion that makes room
// for another object of the same name is just before that object. Content that changed under a
// version that watchers have passed is at the last version, too.
func changesIn[T store.Object](g *gap, before, after store.Snapshot[T]) []*change[T] {
	var changes []*change[T]
	for d := range store.Diff(before, after) {
		ch := &change[T]{old: d.Old, now: d.New, version: g.to, gap: g, complete: math.MaxUint64}
		switch {
		case !d.Deleted():
			if own := versionOf(d.New); own > g.before {
				ch.version = own
			}
		default:
			if successor, ok := after.Get(d.Key); ok {
				ch.version = max(versionOf(successor), 1) - 1
			}
		}
		ch.version = min(max(ch.version, g.before+1), g.to)
		changes = append(changes, ch)
	}
	if len(changes) == 0 {
		return nil
	}
	slices.SortStableFunc(changes, func(a, b *change[T]) int { return cmp.Compare(a.version, b.version) })
	changes[len(changes)-1].complete = g.to
	g.untold = len(changes) > 1 && slices.ContainsFunc(changes, func(c *change[T]) bool { return seen[T]{c, c.effect()}.loses() })
	return changes
}

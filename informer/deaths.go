package informer

import (
	"slices"

	"github.com/tributary-go/tributary/store"
)

// deathsPerRing is how many rings of deletions are kept for handlers that are behind: 16,384 with
// the default ring. A handler that misses more has been blocked for long, and each deletion keeps
// an object alive.
const deathsPerRing = 16

// death is a deletion, as a handler that fell behind needs it.
type death[T store.Object] struct {
	Event[T]
	had    T      // the stored object, which may be older than the event's
	number uint64 // of the change
}

// deaths are the deletions that the ring has evicted, oldest first. All readers that are behind
// share them. Without them, nobody would tell those readers of an object that was created and
// deleted meanwhile.
type deaths[T store.Object] struct {
	list  []death[T]
	limit int
	lost  uint64 // the deaths before this number are not all in the list
}

// add forgets the oldest deaths beyond the limit.
func (d *deaths[T]) add(more ...death[T]) {
	d.list = append(d.list, more...)
	if over := len(d.list) - d.limit; over > 0 {
		d.lost = d.list[over-1].number + 1
		d.forget(over)
	}
}

func (d *deaths[T]) forget(count int) {
	clear(d.list[:count]) // the array must not keep objects alive
	if d.list = d.list[count:]; len(d.list) == 0 {
		d.list = nil
	}
}

// from returns the index of the first death that is not before a change.
func (d *deaths[T]) from(number uint64) int {
	at, _ := slices.BinarySearchFunc(d.list, number, func(e death[T], number uint64) int {
		if e.number < number {
			return -1
		}
		return 1
	})
	return at
}

// buryLocked keeps a change of the ring that is a deletion, before the ring forgets it.
func (r *sharedRing[T]) buryLocked(number uint64) {
	if n := r.changes.Slot(number); n.Type == Deleted && number >= r.kept {
		r.deaths.add(death[T]{n.Event, n.had, number})
	}
}

// deathsLocked returns the deaths from a reader's next change on, in the server's order. complete
// is false if some are forgotten.
func (r *sharedRing[T]) deathsLocked(next uint64) (list []death[T], complete bool) {
	list = slices.Clone(r.deaths.list[r.deaths.from(next):])
	for n := r.changes.First(); n < r.changes.Next(); n++ {
		if slot := r.changes.Slot(n); slot.Type == Deleted {
			list = append(list, death[T]{slot.Event, slot.had, n})
		}
	}
	return list, r.deaths.lost <= next
}

// caughtUpLocked takes a reader's past away, and the deaths that nobody else needs.
func (r *sharedRing[T]) caughtUpLocked(rd *reader[T]) {
	if rd.past == nil {
		return
	}
	rd.past = nil
	r.behind--
	if len(r.deaths.list) == 0 {
		return
	}
	oldest := r.changes.Next()
	for _, other := range r.readers {
		if r.behind > 0 && other.past != nil {
			oldest = min(oldest, other.next)
		}
	}
	r.deaths.forget(r.deaths.from(oldest))
}

// newbornLocked returns those of a list's deletions that a reader cannot infer, since the object
// was created after the reader's position. skipped is the number of the list's first change.
func (r *sharedRing[T]) newbornLocked(deleted []Event[T], skipped uint64) (unknown []death[T]) {
	pasts := map[*past[T]]bool{}
	for _, rd := range r.readers {
		if rd.next < skipped {
			pasts[rd.past] = true
		}
	}
	for _, e := range deleted {
		for p := range pasts {
			if !sameLife(p.at(e.Key), e.Old) {
				// A number before the list's: readers that had read everything do not ask for it.
				unknown = append(unknown, death[T]{e, e.Old, skipped - 1})
				break
			}
		}
	}
	return unknown
}

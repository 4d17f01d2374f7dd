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
type death struct {
	event
	had    store.Entry // the stored object, which may be older than the event's
	number uint64      // of the change
}

// after yields the events that lead from held to the deletion.
func (d *death) after(held store.Entry, yield func(event) bool) bool {
	// The deletion of the held life was not told, or is forgotten.
	if held != nil && !sameLife(held, d.had) {
		if !infer(store.Change[store.Entry]{Key: d.Key, Old: held}, yield) {
			return false
		}
		held = nil
	}
	// A known object's last update is told only if the deletion does not bring a newer state.
	if held == nil || !d.Final {
		if !infer(store.Change[store.Entry]{Key: d.Key, Old: held, New: d.had}, yield) {
			return false
		}
	}
	e := d.event
	e.Missed = true
	return yield(e)
}

// deaths are the deletions that the timeline has evicted, oldest first. All readers that are behind
// share them. Without them, those readers would never hear of an object that was created and
// deleted meanwhile.
type deaths struct {
	list  []death
	limit int
	lost  uint64 // the deaths before this number are not all in the list
}

// add forgets the oldest deaths beyond the limit.
func (d *deaths) add(last death) {
	d.list = append(d.list, last)
	if over := len(d.list) - d.limit; over > 0 {
		d.lost = d.list[over-1].number + 1
		d.forget(over)
	}
}

// from returns a copy of the deaths from a change on, in the server's order.
func (d *deaths) from(number uint64) []death { return slices.Clone(d.list[d.index(number):]) }

func (d *deaths) forgetBefore(number uint64) { d.forget(d.index(number)) }

func (d *deaths) forget(count int) {
	clear(d.list[:count]) // the array must not keep objects alive
	if d.list = d.list[count:]; len(d.list) == 0 {
		d.list = nil
	}
}

// index returns the index of the first death that is not before a change.
func (d *deaths) index(number uint64) int {
	at, _ := slices.BinarySearchFunc(d.list, number, func(e death, number uint64) int {
		if e.number < number {
			return -1
		}
		return 1
	})
	return at
}

package watchcache

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/tributary-go/tributary/store"
)

// backlog bounds the bytes that histories keep for slow watchers: the changes that the window has
// dropped, and the lists of unread changes. The histories that keep the most lose their oldest
// changes first, and no more of them than the bound asks for.
type backlog[T store.Object] struct {
	most  int64
	used  atomic.Int64  // a change counts once, however many histories keep it
	held  atomic.Int64  // changes and lists that are kept; a change of two histories counts twice
	queue []*history[T] // that keep some, or have done so; guarded by the cache's mu
}

// listedWeight is the bytes of a list for each change that it has room for.
const listedWeight = 16

// add notes that a history keeps a change. The cache's mu is held.
func (b *backlog[T]) add(h *history[T], c *change[T]) {
	if c.keepers.Add(1) == 1 {
		b.used.Add(c.weight)
	}
	b.held.Add(1)
	b.enqueue(h)
}

func (b *backlog[T]) enqueue(h *history[T]) {
	if !h.queued {
		h.queued = true
		b.queue = append(b.queue, h)
	}
}

func (b *backlog[T]) giveBack(c *change[T]) {
	if c.keepers.Add(-1) == 0 {
		b.used.Add(-c.weight)
	}
	b.held.Add(-1)
}

// charge notes that the list of a history has room for other than before, in changes. It returns
// the weight that the list has gained. If the list has grown, the cache's mu is held.
func (b *backlog[T]) charge(h *history[T], before, room int) (gained int64) {
	switch {
	case room > 0 && before == 0:
		b.held.Add(1)
		b.enqueue(h)
	case room == 0 && before > 0:
		b.held.Add(-1)
	}
	gained = listedWeight * int64(room-before)
	b.used.Add(gained)
	return gained
}

// trim has histories lose changes until the backlog is an eighth below its bound, if it is over it.
// The cache's mu is held.
func (b *backlog[T]) trim() {
	over := b.used.Load() > b.most
	if !over && len(b.queue) <= 64+2*int(b.held.Load()) {
		return
	}
	least := b.most - b.most/8
	for {
		weights := b.weigh()
		if !over || len(weights) == 0 || b.used.Load() <= least {
			return
		}
		share, lost := shareOf(weights, least, b.used.Load()), 0
		for _, w := range weights {
			if w.weight <= share || b.used.Load() <= least {
				break
			}
			lost += w.history.loseOver(share)
		}
		if lost == 0 { // the watchers have read the rest meanwhile
			return
		}
	}
}

// weighed is a history with its weight.
type weighed[T store.Object] struct {
	history *history[T]
	weight  int64
}

// weigh takes the histories that keep nothing out of the queue, and returns the others, heaviest
// first.
func (b *backlog[T]) weigh() []weighed[T] {
	weights := make([]weighed[T], 0, len(b.queue))
	b.queue = slices.DeleteFunc(b.queue, func(h *history[T]) bool {
		weight := h.weighs()
		if h.queued = weight > 0; h.queued {
			weights = append(weights, weighed[T]{h, weight})
		}
		return !h.queued
	})
	slices.SortFunc(weights, func(a, b weighed[T]) int { return cmp.Compare(b.weight, a.weight) })
	return weights
}

// shareOf is the weight that no history may exceed, so that least is left of used. Histories that
// keep the same change have weights of more than used together, and lose as large a part of them.
func shareOf[T store.Object](weights []weighed[T], least, used int64) int64 {
	sum := int64(0)
	for _, w := range weights {
		sum += w.weight
	}
	rest := int64(float64(sum) * float64(least) / float64(used))
	for i, w := range slices.Backward(weights) { // the lightest first
		if share := rest / int64(i+1); w.weight >= share {
			return share
		}
		rest -= w.weight
	}
	return 0
}

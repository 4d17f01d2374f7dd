package watchcache

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/tributary-go/tributary/store"
)

// backlog bounds the weight of what lanes keep for their slow watchers: the changes that the window
// has dropped, and the lists of unread changes. The lanes that keep the most lose their oldest
// first, and no more of it than the bound asks for.
type backlog[T store.Object] struct {
	most  int64
	used  atomic.Int64 // a change counts once, however many lanes keep it
	held  atomic.Int64 // changes and lists that lanes keep; a change of two lanes counts twice
	queue []*lane[T]   // that keep some, or have done so
}

// listedWeight is what a lane's list takes for each change that it has room for.
const listedWeight = 16

// add notes that a lane keeps a change. The cache's mu and the lane's are held.
func (b *backlog[T]) add(l *lane[T], c *change[T]) {
	if c.keepers.Add(1) == 1 {
		b.used.Add(c.weight)
	}
	b.held.Add(1)
	b.enqueue(l)
}

func (b *backlog[T]) enqueue(l *lane[T]) {
	if !l.queued {
		l.queued = true
		b.queue = append(b.queue, l)
	}
}

func (b *backlog[T]) giveBack(c *change[T]) {
	if c.keepers.Add(-1) == 0 {
		b.used.Add(-c.weight)
	}
	b.held.Add(-1)
}

// charge notes the size of the lane's list, which has become another one. The lane's mu is held. If
// the list has grown, so is the cache's.
func (l *lane[T]) charge(b *backlog[T]) {
	room := cap(l.changes)
	if room <= len(l.few) { // a part of the lane
		room = 0
	}
	switch {
	case room > 0 && l.room == 0:
		b.held.Add(1)
		b.enqueue(l)
	case room == 0 && l.room > 0:
		b.held.Add(-1)
	}
	grown := listedWeight * int64(room-l.room)
	b.used.Add(grown)
	l.weight += grown
	l.room = room
}

// trim has lanes lose what is over the bound, and an eighth more. The cache's mu is held.
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
			lost += w.lane.loseOver(share, b)
		}
		if lost == 0 { // their watchers have read them meanwhile
			return
		}
	}
}

// weighed is a lane with its weight.
type weighed[T store.Object] struct {
	lane   *lane[T]
	weight int64
}

// weigh takes the lanes that keep nothing out of the queue, and returns the others, heaviest first.
func (b *backlog[T]) weigh() []weighed[T] {
	weights := make([]weighed[T], 0, len(b.queue))
	b.queue = slices.DeleteFunc(b.queue, func(l *lane[T]) bool {
		weight := l.weighs()
		if l.queued = weight > 0; l.queued {
			weights = append(weights, weighed[T]{l, weight})
		}
		return !l.queued
	})
	slices.SortFunc(weights, func(a, b weighed[T]) int { return cmp.Compare(b.weight, a.weight) })
	return weights
}

// shareOf is the weight that no lane may exceed, so that least is left of used. Lanes that keep the
// same change have weights of more than used together, and lose as large a part of them.
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

func (l *lane[T]) weighs() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.weight
}

// loseOver drops the oldest changes, until those that are left weigh no more than share, and one at
// least. A watcher without company has lost them all then. It returns their number.
func (l *lane[T]) loseOver(share int64, b *backlog[T]) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for weight := l.weight; n < len(l.changes) && (weight > share || n == 0 || l.members == 1); n++ {
		if weight -= listedWeight; n < l.kept {
			weight -= l.changes[n].weight
		}
	}
	l.lose(n, overBytes, b)
	return n
}

package watchcache

import (
	"sync"

	"github.com/tributary-go/tributary/store"
)

// buffers lend room for events to watchers that read. A watcher that waits has none, and the room
// that a watcher writes into is in the processor's cache.
type buffers[T store.Object] struct {
	small, large sync.Pool // of *[]Delivery[T], with room for smallBatch and batchSize events
}

// smallBatch is how many events most watchers find at most.
const smallBatch = 8

func (b *buffers[T]) borrow(events int) *[]Delivery[T] {
	pool, size := &b.small, smallBatch
	if events > smallBatch {
		pool, size = &b.large, batchSize
	}
	if buffer, ok := pool.Get().(*[]Delivery[T]); ok {
		return buffer
	}
	buffer := make([]Delivery[T], 0, size)
	return &buffer
}

// giveBack takes an empty buffer back.
func (b *buffers[T]) giveBack(buffer *[]Delivery[T]) {
	if cap(*buffer) == smallBatch {
		b.small.Put(buffer)
	} else {
		b.large.Put(buffer)
	}
}

// next is room for one more event.
func (w *Watcher[T]) next() *Delivery[T] {
	if len(w.events) == cap(w.events) {
		w.grow()
	}
	w.events = append(w.events, Delivery[T]{})
	return &w.events[len(w.events)-1]
}

// grow makes room for a few events, or for a whole batch if there is room for a few.
func (w *Watcher[T]) grow() {
	buffer := w.cache.buffers.borrow(len(w.events) + 1)
	events := append((*buffer)[:0], w.events...)
	w.giveBack()
	w.buffer, w.events = buffer, events
}

// giveBack forgets the last events, and returns the room for them.
func (w *Watcher[T]) giveBack() {
	if w.buffer != nil {
		clear(w.events)
		w.cache.buffers.giveBack(w.buffer)
		w.buffer, w.events = nil, nil
	}
}

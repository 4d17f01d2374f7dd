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

// batch is the events that a watcher has read last. The room for them is borrowed.
type batch[T store.Object] struct {
	events []Delivery[T]
	buffer *[]Delivery[T]
}

// next is room for one more event.
func (b *batch[T]) next(from *buffers[T]) *Delivery[T] {
	if len(b.events) == cap(b.events) {
		b.grow(from)
	}
	b.events = append(b.events, Delivery[T]{})
	return &b.events[len(b.events)-1]
}

// grow makes room for a few events, or for a whole batch if there is room for a few.
func (b *batch[T]) grow(from *buffers[T]) {
	buffer := from.borrow(len(b.events) + 1)
	events := append((*buffer)[:0], b.events...)
	b.giveBack(from)
	b.buffer, b.events = buffer, events
}

// giveBack forgets the events, and returns the room for them.
func (b *batch[T]) giveBack(to *buffers[T]) {
	if b.buffer != nil {
		clear(b.events)
		to.giveBack(b.buffer)
		b.buffer, b.events = nil, nil
	}
}

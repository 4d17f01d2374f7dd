package watchcache

import (
	"sync"

	"github.com/tributary-go/tributary/store"
)

// buffers lend room for events to watchers that read. So a watcher that waits has none, and what a
// watcher writes into is in the processor's cache.
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

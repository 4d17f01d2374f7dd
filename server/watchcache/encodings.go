package watchcache

import (
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/watch"
)

// frame is an event in the bytes of one format.
type frame struct {
	event  watch.EventType
	format any
	bytes  atomic.Pointer[[]byte] // nil while they are not kept
}

// encodings bounds the bytes of the frames that a cache keeps: those made first go first. Within
// the window's bound, three formats would leave it 1,446 changes in place of 3,462.
type encodings struct {
	most int64

	mu    sync.Mutex // guards total and queue; no other lock is taken under it
	total int64
	queue []*frame // in the order of making; some are discarded already
}

// keep notes the bytes of a frame, unless its change has been retired meanwhile.
func (x *encodings) keep(bytes []byte, f *frame, retired *bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if *retired {
		return
	}
	f.bytes.Store(&bytes)
	x.total += int64(cap(bytes))
	x.queue = append(x.queue, f)
	for len(x.queue) > 0 && (x.total > x.most || x.queue[0].bytes.Load() == nil) {
		x.discard(x.queue[0])
		x.queue[0] = nil
		x.queue = x.queue[1:]
	}
}

// discard forgets the bytes of a frame. The lock is held.
func (x *encodings) discard(f *frame) {
	if bytes := f.bytes.Swap(nil); bytes != nil {
		x.total -= int64(cap(*bytes))
	}
}

// held is the size of all bytes that are kept.
func (x *encodings) held() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.total
}

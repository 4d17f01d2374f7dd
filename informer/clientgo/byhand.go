package clientgo

import (
	"sync"
	"sync/atomic"

	"github.com/tributary-go/tributary/store"
)

// byHand is the content of an informer, and over it the objects that were written by hand. A write
// lasts until the key's next event, and all writes until the next list. Events are the difference
// between two reads: a write stays if an object under its key comes and goes between them.
type byHand[T store.Object] struct {
	informer copied[T]
	used     atomic.Bool // written is not nil: without the lock, for the reads of most informers

	mu      sync.Mutex        // guards the fields below
	written *store.Indexer[T] // the whole content with the writes; nil if nothing was written
	seen    store.Snapshot[T] // the informer's content up to which written has its changes
	lists   int               // how many lists the informer had completed when written was made
}

func (b *byHand[T]) Snapshot() store.Snapshot[T] {
	if b.used.Load() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.followLocked() {
			return b.written.Snapshot()
		}
	}
	return b.informer.Snapshot()
}

// Get is Snapshot().Get, by way of the informer's own.
func (b *byHand[T]) Get(key string) (T, bool) {
	if b.used.Load() {
		return b.Snapshot().Get(key)
	}
	return b.informer.Get(key)
}

// open returns the store to write into. A write that races with an event or a list may be lost: it
// would not last longer if it had come first.
func (b *byHand[T]) open() (store.Store[T], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.followLocked() {
		return b.written, nil
	}
	b.lists = b.listsNow() // before the content, so that no list is missed
	b.seen, b.written = store.Snapshot[T]{}, &store.Indexer[T]{}
	b.written.KeepNameless()
	b.catchUpLocked(b.informer.Snapshot())
	b.used.Store(true)
	return b.written, nil
}

// followLocked brings written up to date. It reports false if nothing was written since the last
// list.
func (b *byHand[T]) followLocked() bool {
	switch {
	case b.written == nil:
		return false
	case b.lists != b.listsNow():
		b.written, b.seen = nil, store.Snapshot[T]{}
		b.used.Store(false)
		return false
	}
	if now := b.informer.Snapshot(); now != b.seen {
		b.catchUpLocked(now)
	}
	return true
}

// catchUpLocked applies the informer's changes since seen.
func (b *byHand[T]) catchUpLocked(now store.Snapshot[T]) {
	// These calls fail on nil alone.
	for c := range store.Diff(b.seen, now) {
		if c.Deleted() {
			_ = b.written.Delete(c.Old)
		} else {
			_ = b.written.Update(c.New)
		}
	}
	_ = b.written.Bookmark(now.ResourceVersion())
	b.seen = now
}

// listsNow is how many lists the informer has completed.
func (b *byHand[T]) listsNow() (all int) {
	for _, count := range b.informer.Status().Lists {
		all += count
	}
	return all
}

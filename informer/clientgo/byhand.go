package clientgo

import (
	"sync"
	"sync/atomic"

	"github.com/tributary-go/tributary/store"
)

// byHand is the content of an informer with what was written over it by hand. Such a write lasts
// until the key's next event, and all of them until the next list.
type byHand[T store.Object] struct {
	informer copied[T]
	used     atomic.Bool // false: nothing is written over the informer's content

	mu      sync.Mutex
	written *store.Indexer[T]
	seen    store.Snapshot[T] // the informer's content that written has followed to
	lists   int               // of the informer, when written was made
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

// open returns the store to write into. A write that races with an event or a list may be lost, as
// its effect would be a moment later.
func (b *byHand[T]) open() (store.Store[T], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.followLocked() {
		return b.written, nil
	}
	b.lists = b.listsNow() // before the content, so that no list is missed
	b.seen, b.written = store.Snapshot[T]{}, &store.Indexer[T]{}
	b.catchUpLocked(b.informer.Snapshot())
	b.used.Store(true)
	return b.written, nil
}

// followLocked brings written up to date; false if there is none, or none any longer.
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

func (b *byHand[T]) catchUpLocked(now store.Snapshot[T]) {
	// An informer's objects have names, the only thing that these calls ask for.
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

func (b *byHand[T]) listsNow() (all int) {
	for _, count := range b.informer.Status().Lists {
		all += count
	}
	return all
}

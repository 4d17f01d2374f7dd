package clientgo

import (
	"errors"
	"sync/atomic"

	"github.com/tributary-go/tributary/store"
)

// byHand is the content of an informer. Until the informer has synced, it is what was written here
// by hand, if anything was.
type byHand[T store.Object] struct {
	informer copied[T]
	used     atomic.Bool
	written  store.Indexer[T]
}

func (b *byHand[T]) Snapshot() store.Snapshot[T] {
	if b.used.Load() && !isClosed(b.informer.Synced()) {
		return b.written.Snapshot()
	}
	return b.informer.Snapshot()
}

// open returns the store to write into. A write that races with the first list is lost, as its
// effect would be a moment later.
func (b *byHand[T]) open() (store.Store[T], error) {
	if isClosed(b.informer.Synced()) {
		return nil, errSynced
	}
	b.used.Store(true)
	return &b.written, nil
}

var errSynced = errors.New("only its informer writes the store once it has synced: " +
	"write before the informer is started, or give the object to the server, which may be a fake")

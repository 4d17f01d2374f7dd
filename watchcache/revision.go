package watchcache

import (
	"sync"
	"sync/atomic"

	"github.com/tributary-go/tributary/internal/signal"
)

// revision counts the writes of a server, over all its collections, as etcd's revision does.
type revision struct {
	current atomic.Uint64
	changed signal.Signal

	writing sync.Mutex // held over a whole write, so that versions become visible in order
}

// write makes one write at the next version; the version counts once the write is visible, if it is one.
func (r *revision) write(do func(version string) (written bool, err error)) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	version := r.current.Load() + 1
	written, err := do(formatVersion(version))
	if written && err == nil {
		r.current.Store(version)
		r.changed.Broadcast()
	}
	return err
}

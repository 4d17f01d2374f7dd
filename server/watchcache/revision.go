package watchcache

import (
	"sync"
	"sync/atomic"

	"github.com/tributary-go/tributary/internal/signal"
)

// Revision counts the writes of a server over all its collections, as etcd's revision does. Make
// one with [NewRevision]; its methods are safe for concurrent use.
type Revision struct {
	current atomic.Uint64
	changed signal.Signal

	writing sync.Mutex // held over a whole write, so that versions become visible in order
}

// NewRevision starts at 1, as an empty etcd does: zero means "any version".
func NewRevision() *Revision {
	r := &Revision{}
	r.current.Store(1)
	return r
}

// Current is the version of the last write.
func (r *Revision) Current() uint64 { return r.current.Load() }

// Write makes one write at the next version. Writers wait for each other. The version counts only
// if do reports that it has written, and has no error.
func (r *Revision) Write(do func(version string) (written bool, err error)) error {
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

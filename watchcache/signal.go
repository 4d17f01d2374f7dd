package watchcache

import (
	"sync"
	"sync/atomic"
)

// signal wakes everybody who waits: a channel that closes at the next broadcast.
type signal struct {
	mu sync.Mutex
	ch chan struct{} // nil while nobody waits
}

// wait returns the channel that the next broadcast closes. Take it before looking at what it announces.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// revision counts the writes of a server, over all its collections, as etcd's revision does.
type revision struct {
	current atomic.Uint64
	changed signal

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
		r.changed.broadcast()
	}
	return err
}

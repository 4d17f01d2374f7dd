// Package signal wakes any number of goroutines at once.
package signal

import "sync"

// Signal wakes everybody who waits: a channel that closes at the next broadcast. The zero value is
// ready, and costs nothing while nobody waits. It is safe for concurrent use.
type Signal struct {
	mu sync.Mutex
	ch chan struct{} // guarded by mu; nil while nobody waits
}

// Wait returns the channel that the next broadcast closes. Take it before looking at what it
// announces.
func (s *Signal) Wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

// Broadcast wakes all who wait. It does not block.
func (s *Signal) Broadcast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

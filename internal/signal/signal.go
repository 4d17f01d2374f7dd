// Package signal wakes any number of goroutines at once.
package signal

import "sync/atomic"

// Signal wakes all goroutines that wait: they have a channel that closes at the next broadcast. The
// zero value is ready, and costs nothing while no goroutine waits. It is safe for concurrent use.
type Signal struct {
	waited atomic.Pointer[chan struct{}] // nil while no goroutine waits
}

// Wait returns the channel that the next broadcast closes. Call it before you look at the state
// that the broadcast announces.
func (s *Signal) Wait() <-chan struct{} {
	for {
		if ch := s.waited.Load(); ch != nil {
			return *ch
		}
		ch := make(chan struct{})
		if s.waited.CompareAndSwap(nil, &ch) {
			return ch
		}
	}
}

// Until calls done now and after each broadcast. It returns true once done does, and false if over
// is closed first.
func (s *Signal) Until(over <-chan struct{}, done func() bool) bool {
	for {
		changed := s.Wait()
		if done() {
			return true
		}
		select {
		case <-changed:
		case <-over:
			return false
		}
	}
}

// Broadcast wakes all goroutines that wait. It does not block. Call it after the change of state.
func (s *Signal) Broadcast() {
	if s.waited.Load() == nil {
		return
	}
	if ch := s.waited.Swap(nil); ch != nil {
		close(*ch)
	}
}

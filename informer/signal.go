package informer

import "sync"

// signal wakes everybody who waits: a channel that closes at the next broadcast.
type signal struct {
	mu sync.Mutex
	ch chan struct{} // guarded by mu; nil while nobody waits
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

package pace

import (
	"container/list"
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Server paces the requests of all collections of a process to one server. Collections that each
// keep a pace of their own add up: a thousand of them would ask a dead server a thousand times a
// second. [ServerOf] makes one. It is safe for concurrent use.
//
// A server that is there gets [InFlight] requests at once. The next one follows when one of these
// is answered, or after [Crowded]: requests that hang stop no other. After [Attempts] requests in a
// row that did not reach it, the server counts as absent. Then one request is sent every [Probe],
// for all collections together. Its first answer, even an error, lets the others go. Requests go in
// the order in which they were asked for.
type Server struct {
	mu       sync.Mutex // guards the fields below
	inFlight int
	failures int           // requests in a row that did not reach the server
	last     time.Time     // when the last request was let go
	gap      time.Duration // from last to the next request while the server is absent
	waiting  list.List     // of chan struct{}, which is closed when the request may go
	timer    *time.Timer   // for the first of them
}

const (
	// InFlight is a load that every API server bears.
	InFlight = 50
	// Crowded is the pace of further requests while InFlight are unanswered.
	Crowded = 20 * time.Millisecond
	// Attempts go at the pace of each collection. A program with few of them never feels the
	// common pace.
	Attempts = 10
	// Probe is the pace of the requests to an absent server. Each gap is between a half of it and
	// one and a half, so that processes spread.
	Probe = 500 * time.Millisecond
)

// Outcome is the end of a request.
type Outcome uint8

const (
	// Answered: the server sent an answer, whatever it says.
	Answered Outcome = iota
	// Unreached: there was no server to answer.
	Unreached
	// Neither: the client gave the request up, or could not send it.
	Neither
)

// Enter returns when a request may be sent. If it must wait, waits is called before, and its result
// after. The caller calls done when the server has answered, or has not. Enter fails if ctx ends
// first.
func (s *Server) Enter(ctx context.Context, waits func() (ended func())) (done func(Outcome), err error) {
	s.mu.Lock()
	turn := make(chan struct{})
	place := s.waiting.PushBack(turn)
	s.releaseLocked()
	s.mu.Unlock()
	select {
	case <-turn:
		return s.done, nil
	default:
	}
	defer waits()()
	select {
	case <-turn:
		return s.done, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	select {
	case <-turn: // at this moment
		s.mu.Unlock()
		s.done(Neither)
	default:
		s.waiting.Remove(place)
		s.mu.Unlock()
	}
	return nil, context.Cause(ctx)
}

func (s *Server) done(o Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	switch o {
	case Answered:
		s.failures = 0
	case Unreached:
		s.failures++
	}
	s.releaseLocked()
}

// releaseLocked lets the requests go whose turn it is.
func (s *Server) releaseLocked() {
	for s.waiting.Len() > 0 {
		now := time.Now()
		if wait := s.nextLocked().Sub(now); wait > 0 {
			s.wakeLocked(wait)
			return
		}
		s.inFlight++
		s.last, s.gap = now, Probe/2+rand.N(Probe)
		close(s.waiting.Remove(s.waiting.Front()).(chan struct{}))
	}
}

// nextLocked is when the next request may go; the zero time if that is now.
func (s *Server) nextLocked() time.Time {
	switch {
	case s.failures >= Attempts:
		return s.last.Add(s.gap)
	case s.inFlight >= InFlight:
		return s.last.Add(Crowded)
	}
	return time.Time{}
}

func (s *Server) wakeLocked(after time.Duration) {
	if s.timer != nil {
		s.timer.Reset(after)
		return
	}
	s.timer = time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.releaseLocked()
	})
}

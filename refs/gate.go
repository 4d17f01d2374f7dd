package refs

import (
	"context"
	"sync"
	"time"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/reflector"
)

const (
	// reserve is the number of turns for names with a waiting Get.
	reserve = 8
)

// gate bounds the requests that wait for a state, of all names together. One answer that means the
// whole server, such as a refused connection or a 429, keeps all names back.
type gate struct {
	turns, reserve chan struct{}

	mu      *sync.Mutex // of Refs; guards the fields below
	shut    time.Time   // no request before
	asker   pace.Asker
	failure *failure // that keeps all names back; nil once the server answers
}

func newGate(o options, mu *sync.Mutex) *gate {
	return &gate{
		turns: make(chan struct{}, max(1, o.pace)), reserve: make(chan struct{}, reserve), mu: mu,
		asker: pace.Asker{Initial: pace.Initial, Limit: pace.Limit},
	}
}

// turn is the right to send one request.
type turn struct {
	gate  *gate
	lane  chan struct{}
	began time.Time
}

// enter waits for a turn. Once urgent is closed, the reserve will do too.
func (g *gate) enter(ctx context.Context, urgent <-chan struct{}) (*turn, error) {
	t := &turn{gate: g, lane: g.turns}
	select {
	case g.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-urgent:
		select {
		case g.turns <- struct{}{}:
		case g.reserve <- struct{}{}:
			t.lane = g.reserve
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for {
		wait := time.Until(g.opens())
		if wait <= 0 {
			t.began = time.Now()
			return t, nil
		}
		if !pace.Sleep(ctx, wait) {
			<-t.lane
			return nil, context.Cause(ctx)
		}
	}
}

func (g *gate) opens() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

// leave gives the turn back, with the error of its request. news tells that the server has failed,
// or has come back and answers.
func (t *turn) leave(err error) (news, answers bool) {
	<-t.lane
	g := t.gate
	class := reflector.Classify(err)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.keeps(class) {
		if err != nil && (class == reflector.Unknown || class == reflector.Silent) { // no answer
			return false, false
		}
		if g.failure != nil && t.began.Before(g.failure.at) { // under way when the gate was shut
			return false, false
		}
		news = g.failure != nil
		g.asker.Alive(0)
		g.failure, g.shut = nil, time.Time{}
		return news, true
	}
	if t.began.Before(g.shut) { // as above
		return false, false
	}
	news = g.failure == nil || g.failure.class != class
	now, answer := time.Now(), pace.Failed
	switch {
	case class == reflector.Unreachable:
		answer = pace.Absent
	case !ofServer(class):
		answer = pace.Refused
	}
	g.failure = &failure{class: class, err: err, at: now, starts: answer == pace.Refused}
	g.shut = now.Add(g.asker.Next(answer, pace.RetryAfter(err)))
	return news, false
}

// keeps reports whether a failure keeps all names back: that of a server which is not there, or
// fails, or was away and has not read its roles yet. The caller holds the lock.
func (g *gate) keeps(class reflector.Class) bool {
	return ofServer(class) || (class == reflector.Forbidden || class == reflector.NotFound) && g.asker.Patient()
}

// ofServer reports whether a failure is that of all names.
func ofServer(class reflector.Class) bool {
	switch class {
	case reflector.Unreachable, reflector.Disconnected, reflector.TLS, reflector.Credentials, reflector.Throttled,
		reflector.ServerError, reflector.Unauthorized, reflector.WrongAnswer:
		return true
	}
	return false
}

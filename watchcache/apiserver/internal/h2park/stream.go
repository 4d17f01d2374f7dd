package h2park

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

var (
	errGone = errors.New("the stream is over")
	errSlow = fmt.Errorf("the client has taken nothing for too long: %w", os.ErrDeadlineExceeded)
)

// Stream is a stream that its handler may park. Before that it belongs to the server.
type Stream struct {
	conn   *conn
	id     uint32
	writer http.ResponseWriter // of its handler

	// Guarded by conn.mu.
	window     int64 // what may be sent on it, of the connection's
	clientDone bool  // the request is whole
	serverDone bool  // so is the answer
	parked     bool  // it is ours
	over       bool
	acked      chan struct{} // closed when it is parked, or never will be; nil: not asked for
	wake       chan struct{} // while it waits for a window
	gone       func()        // called when it is over
}

// Park takes the stream from the server, which cancels its request's context. The handler has
// flushed its answer and returns next; all further writes are by [Stream.Write]. It blocks until
// that can be done, or cancel is readable. If it is false the handler goes on as before, whose
// context tells if the client has gone meanwhile. gone is called when the stream ends, other than
// by End or Reset: it must not block, nor call the stream.
func (s *Stream) Park(cancel <-chan struct{}, gone func()) bool {
	c := s.conn
	for {
		c.mu.Lock()
		if s.over || s.serverDone || !s.clientDone || c.err != nil || c.credit.most < parkFrom {
			c.mu.Unlock()
			return false
		}
		if c.in.atBoundary() {
			break
		}
		boundary := c.inBound.Wait()
		c.mu.Unlock()
		select {
		case <-boundary:
		case <-cancel:
			return false
		}
	}
	var ping [8]byte
	_, _ = rand.Read(ping[:]) // never fails
	s.acked, s.gone, s.writer = make(chan struct{}), gone, nil
	c.acks[ping] = s
	frames := appendNumber(nil, frameReset, s.id, codeCancel)
	frames = append(head{length: 8, kind: framePing}.appendTo(frames), ping[:]...)
	c.injectLocked(frames)
	acked := s.acked
	c.mu.Unlock()
	<-acked
	c.mu.Lock()
	defer c.mu.Unlock()
	s.acked = nil
	return s.parked
}

// Write sends the frames of a batch on a parked stream, as DATA. It blocks while the client's
// windows are empty, up to the patience of the connection: then the error is an
// os.ErrDeadlineExceeded.
func (s *Stream) Write(frames [][]byte) error {
	c, deadline := s.conn, time.Now().Add(s.conn.patience)
	rest := 0
	for _, frame := range frames {
		rest += len(frame)
	}
	for at := 0; rest > 0; {
		c.mu.Lock()
		n, err := s.takeLocked(min(rest, initialFrame), deadline)
		if err == nil {
			c.own = head{length: n, kind: frameData, stream: s.id}.appendTo(c.own)
			for left := n; left > 0; {
				part := frames[0][at:min(len(frames[0]), at+left)]
				c.own = append(c.own, part...)
				if left, at = left-len(part), at+len(part); at == len(frames[0]) {
					frames, at = frames[1:], 0
				}
			}
		}
		c.mu.Unlock()
		if err != nil {
			return err
		}
		if err := c.flush(); err != nil {
			return c.reason(err)
		}
		rest -= n
	}
	return nil
}

// takeLocked takes from the windows, as soon as there is something, up to most. It gives up the
// lock while it waits.
func (s *Stream) takeLocked(most int, deadline time.Time) (int, error) {
	c := s.conn
	var late *time.Timer
	for {
		switch {
		case s.over && errors.Is(c.err, os.ErrDeadlineExceeded):
			return 0, errSlow
		case s.over:
			return 0, errGone
		}
		if n := min(int64(most), s.window, c.credit.pool); n > 0 {
			s.window -= n
			c.credit.pool -= n
			return int(n), nil
		}
		if late == nil {
			late = time.NewTimer(time.Until(deadline))
			defer late.Stop()
		}
		wake := make(chan struct{})
		s.wake = wake
		c.waiting[s] = struct{}{}
		c.mu.Unlock()
		var err error
		select {
		case <-wake:
		case <-late.C:
			err = errSlow
		}
		c.mu.Lock()
		s.wake = nil
		delete(c.waiting, s)
		if err != nil {
			return 0, err
		}
	}
}

func (s *Stream) wakeLocked() {
	if s.wake != nil {
		close(s.wake)
		s.wake = nil
	}
}

// End ends a parked stream: its answer is whole.
func (s *Stream) End() {
	s.finish(head{kind: frameData, flags: flagEndStream, stream: s.id}.appendTo(nil))
}

// Reset ends a parked stream whose answer is not whole.
func (s *Stream) Reset() { s.finish(appendNumber(nil, frameReset, s.id, codeCancel)) }

// finish sends the last frame, if the client has not gone.
func (s *Stream) finish(frame []byte) {
	c := s.conn
	c.mu.Lock()
	if s.over {
		c.mu.Unlock()
		return
	}
	s.gone = nil
	c.own = append(c.own, frame...)
	c.closeLocked(s)
	c.mu.Unlock()
	_ = c.flush() // if it fails, all streams end
}

// closeLocked forgets a stream that is over.
func (c *conn) closeLocked(s *Stream) {
	if s.over {
		return
	}
	s.over = true
	delete(c.streams, s.id)
	s.wakeLocked()
	if s.parked {
		s.parked = false
		c.parked--
		if s.gone != nil {
			s.gone()
		}
	}
	s.gone = nil
	if len(c.streams) == 0 {
		c.restLocked()
	}
}

package h2park

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/tributary-go/tributary/internal/signal"
)

const (
	// pipeBytes is how much of what the client sends may wait for the server.
	pipeBytes = 16 << 10
	// linger is how long a connection stays open after its last stream, so that a late frame of the
	// client does not have its kernel discard what it has not read.
	linger = time.Second
)

var (
	errTooSlow = fmt.Errorf("the client takes nothing: %w", os.ErrDeadlineExceeded)
	errInvalid = errors.New("the server writes to a parked stream")
)

// conn is a client's connection as the server sees it.
type conn struct {
	net.Conn // to the client
	patience time.Duration
	secret   string // proves that a field of a request is ours

	// writing has room for who writes to the client; it is taken before mu. That may take long: a
	// channel, unlike a mutex, is waited for on the clock of a test, too.
	writing chan struct{}
	cut     []byte // guarded by writing: the beginning of a frame of the server

	mu      sync.Mutex    // guards what follows
	more    sync.Cond     // of mu: there is something in pipe, or room
	inBound signal.Signal // what the client has sent ends with a frame
	bound   signal.Signal // what the server has written ends with a frame, or nothing will be
	in      scanner       // of what the client sends
	out     scanner       // of what the server sends
	pipe    []byte        // for the server to read
	inject  []byte        // frames for the server that wait for a boundary
	own     []byte        // frames for the client that wait for one
	field   []byte        // to be appended to the header block that is coming in
	fieldOn uint32        // the stream of that block
	suffix  []byte        // to be appended to the frame that is coming in
	began   bool          // the client's first frame has come
	reply   bool          // there is something to be flushed by who has read it

	credit     credit
	windowOf   int64 // a stream's, when it begins
	growth     int64 // of all windows, once the server has acknowledged it
	maxFrame   int   // that the server takes
	maxStreams uint32
	streams    map[uint32]*Stream
	lastStream uint32
	parked     int
	acks       map[[8]byte]*Stream  // what each PING of ours stands for
	waiting    map[*Stream]struct{} // parked streams without a window

	wrote     uint64 // how often something was written
	wroteThen uint64 // when stall began
	awaiting  int    // who waits for others that write
	stall     *time.Timer

	idleAfter time.Duration // 0: never
	idle      *time.Timer
	leaving   bool // the server has sent a GOAWAY
	failed    bool // with an error
	detached  bool // the server has closed the connection, and parked streams keep it
	err       error
}

// newConn wraps a connection. Its preface may have been read.
func newConn(client net.Conn, o options) *conn {
	var secret [12]byte
	_, _ = rand.Read(secret[:]) // never fails
	c := &conn{
		Conn: client, writing: make(chan struct{}, 1), patience: o.patience, idleAfter: o.idle, secret: hex.EncodeToString(secret[:]),
		credit: newCredit(), windowOf: initialWindow, maxFrame: initialFrame, maxStreams: maxWindow,
		streams: map[uint32]*Stream{}, acks: map[[8]byte]*Stream{}, waiting: map[*Stream]struct{}{},
	}
	c.more.L = &c.mu
	if !o.sawPreface {
		c.in.left = prefaceBytes
	}
	c.restLocked()
	return c
}

// pump reads what the client sends, until the connection ends.
func (c *conn) pump() {
	buffer := make([]byte, 4<<10)
	held := 0 // bytes at the beginning of buffer that are no whole piece yet
	for {
		n, err := c.Conn.Read(buffer[held:])
		held += n
		c.mu.Lock()
		taken := c.receiveLocked(buffer[:held])
		reply := c.reply
		c.reply = false
		if err == nil && c.detached && c.failed {
			err = net.ErrClosed
		}
		for len(c.pipe) > pipeBytes && c.err == nil && !c.detached {
			c.more.Wait()
		}
		c.mu.Unlock()
		held = copy(buffer, buffer[taken:held])
		if err == nil && reply {
			err = c.flush()
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

// Read is called by the server.
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pipe) == 0 {
		if c.err != nil {
			return 0, c.err
		}
		c.more.Wait()
	}
	n := copy(p, c.pipe)
	if c.pipe = c.pipe[n:]; len(c.pipe) == 0 {
		c.pipe = nil
	}
	c.more.Broadcast()
	return n, nil
}

// Write is called by the server.
func (c *conn) Write(p []byte) (int, error) {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	all := p
	if len(c.cut) > 0 {
		all = append(c.cut, p...)
		c.cut = nil
	}
	c.mu.Lock()
	pass, rest, err := c.sendLocked(all)
	c.mu.Unlock()
	c.cut = append([]byte(nil), rest...)
	if err == nil {
		err = c.pass(pass)
	}
	c.mu.Lock()
	c.wrote++
	if err == nil {
		err = c.err
	}
	if c.out.atBoundary() {
		c.bound.Broadcast()
	}
	c.mu.Unlock()
	if err != nil {
		c.end(err)
		return 0, err
	}
	return len(p), nil
}

// pass writes frames of the server. A client that takes nothing for as long as the patience says
// ends the connection: the server's deadlines reset streams, but its RST_STREAM would wait behind
// the frame that the client does not take.
func (c *conn) pass(frames []byte) error {
	if len(frames) == 0 {
		return nil
	}
	for len(frames) > 0 {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.patience)) // fails as the write then does
		n, err := c.Conn.Write(frames)
		if frames = frames[n:]; err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return err
		}
	}
	_ = c.Conn.SetWriteDeadline(time.Time{})
	return nil
}

// flush writes the frames that parked streams and the connection itself have for the client, once
// the server is not in the middle of one of its own.
func (c *conn) flush() error {
	select {
	case c.writing <- struct{}{}:
	default:
		c.awaitClient()
		defer c.clientTook()
		c.writing <- struct{}{}
	}
	for {
		own, boundary := c.takeOwn()
		if boundary == nil {
			defer func() { <-c.writing }()
			return c.writeOwn(own)
		}
		<-c.writing
		c.awaitClient()
		<-boundary
		c.clientTook()
		c.writing <- struct{}{}
	}
}

// takeOwn takes the frames of our own, or returns what to wait for.
func (c *conn) takeOwn() (own []byte, boundary <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && !c.detached && !c.out.atBoundary() {
		return nil, c.bound.Wait()
	}
	own, c.own = c.own, nil
	return own, nil
}

// writeOwn writes frames of our own. Often there are none left: somebody else has written them
// behind frames of another stream. A client that takes nothing for as long as its patience says
// ends the connection.
func (c *conn) writeOwn(own []byte) error {
	const most = 64 << 10 // for which the client has its time
	for len(own) > 0 {
		n := min(most, len(own))
		_ = c.Conn.SetWriteDeadline(time.Now().Add(c.patience)) // fails as the write then does
		if _, err := c.Conn.Write(own[:n]); err != nil {
			c.end(err)
			return err
		}
		if own = own[n:]; len(own) == 0 {
			_ = c.Conn.SetWriteDeadline(time.Time{})
		}
		c.mu.Lock()
		c.wrote++
		c.mu.Unlock()
	}
	return nil
}

// awaitClient begins to wait for others who write: if none gets on for a while, the connection ends.
func (c *conn) awaitClient() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.awaiting++; c.awaiting > 1 {
		return
	}
	c.wroteThen = c.wrote
	if c.stall == nil {
		c.stall = time.AfterFunc(c.patience, c.checkClient)
	} else {
		c.stall.Reset(c.patience)
	}
}

func (c *conn) clientTook() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.awaiting--; c.awaiting == 0 {
		c.stall.Stop()
	}
}

func (c *conn) checkClient() {
	c.mu.Lock()
	stuck := c.awaiting > 0 && c.wrote == c.wroteThen
	c.wroteThen = c.wrote
	if c.awaiting > 0 && !stuck {
		c.stall.Reset(c.patience)
	}
	c.mu.Unlock()
	if stuck {
		c.end(errTooSlow)
	}
}

// Close is called by the server. After a GOAWAY without an error the parked streams keep the
// connection.
func (c *conn) Close() error {
	c.mu.Lock()
	if c.parked == 0 || !c.leaving || c.failed || c.err != nil {
		c.mu.Unlock()
		c.end(net.ErrClosed)
		return nil
	}
	c.detached = true
	for _, s := range c.streams {
		if !s.parked { // it was to be, but nothing proves that the server's part has been sent
			c.own = appendNumber(c.own, frameReset, s.id, codeCancel)
			c.closeLocked(s)
		}
	}
	c.unansweredLocked()
	c.pipe = nil
	c.more.Broadcast()
	c.bound.Broadcast()
	c.inBound.Broadcast()
	c.mu.Unlock()
	go func() { _ = c.flush() }() // the server's goroutine does not wait for the client
	return nil
}

// end closes the connection, and with it all streams.
func (c *conn) end(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
		c.idleStopLocked()
		for _, s := range c.streams {
			c.closeLocked(s)
		}
		c.unansweredLocked()
	}
	c.more.Broadcast()
	c.bound.Broadcast()
	c.inBound.Broadcast()
	c.mu.Unlock()
	_ = c.Conn.Close()
}

// reason is why a write has failed: why the connection has ended, if it has.
func (c *conn) reason(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	return err
}

// unansweredLocked gives up the PINGs that the server will not answer.
func (c *conn) unansweredLocked() {
	for _, s := range c.acks {
		close(s.acked)
	}
	clear(c.acks)
}

// restLocked begins the time after which a connection without streams ends.
func (c *conn) restLocked() {
	switch {
	case c.err != nil:
	case c.detached && c.parked == 0:
		time.AfterFunc(linger, func() { c.end(net.ErrClosed) })
	case c.idleAfter > 0 && c.idle == nil:
		c.idle = time.AfterFunc(c.idleAfter, c.leave)
	case c.idleAfter > 0:
		c.idle.Reset(c.idleAfter)
	}
}

func (c *conn) idleStopLocked() {
	if c.idle != nil {
		c.idle.Stop()
	}
}

// leave has the server send a GOAWAY, as if the client had sent one, if there are still no streams.
func (c *conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams) == 0 {
		c.injectLocked(append(head{length: 8, kind: frameGoAway}.appendTo(nil), make([]byte, 8)...))
	}
}

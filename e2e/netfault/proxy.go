package netfault

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Proxy passes TCP connections on to an upstream address.
type Proxy struct {
	listener net.Listener
	work     sync.WaitGroup // its goroutines

	mu       sync.Mutex // guards what follows
	upstream string
	// Every connection; false once it is a black hole, which only the proxy's end closes.
	links    map[*link]bool
	accepted int
	delay    time.Duration
	rate     int           // bytes per second; 0: no limit
	paused   chan struct{} // closed to go on; nil while nothing is paused
	closed   bool
}

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	dead           chan struct{} // closed: what comes is swallowed from now on

	mu     sync.Mutex
	budget int // bytes from the server until it is cut; negative: no such limit
}

// Listen starts a proxy to upstream on a free loopback port.
func Listen(t testing.TB, upstream string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{listener: listener, upstream: upstream, links: map[*link]bool{}}
	p.work.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Address is where clients connect to.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Accepted is the number of connections that clients have made so far.
func (p *Proxy) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

// Switch sends later connections to another upstream; those that are open stay.
func (p *Proxy) Switch(upstream string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.upstream = upstream
}

// Delay holds every piece of data back for d, in both directions. Zero ends it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Throttle passes on at most so many bytes a second per connection and direction. Zero ends it.
func (p *Proxy) Throttle(bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = bytesPerSecond
}

// Cut closes every open connection in both directions, as a server does that ends (FIN).
func (p *Proxy) Cut() {
	for _, l := range p.open() {
		l.close()
	}
}

// CutAfter lets each open connection bring n more bytes from the server and closes it then: in the
// middle of whatever the server is saying.
func (p *Proxy) CutAfter(n int) {
	for _, l := range p.open() {
		l.mu.Lock()
		l.budget = n
		l.mu.Unlock()
	}
}

// Reset breaks every open connection off (RST).
func (p *Proxy) Reset() {
	for _, l := range p.open() {
		for _, connection := range []net.Conn{l.client, l.server} {
			if tcp, ok := connection.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
		}
		l.close()
	}
}

// Blackhole swallows from now on what is sent over the open connections, in both directions, and
// never closes them: what a client sees of a host that lost its power, or of a load balancer that
// forgot the connection. Later connections work.
func (p *Proxy) Blackhole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l, faultable := range p.links {
		if faultable {
			close(l.dead)
			p.links[l] = false
		}
	}
}

// Pause holds back all data, of open connections and of new ones, until Resume. Nothing is lost.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused == nil {
		p.paused = make(chan struct{})
	}
}

// Resume ends Pause.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused != nil {
		close(p.paused)
		p.paused = nil
	}
}

// open returns the connections on which faults act.
func (p *Proxy) open() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l, faultable := range p.links {
		if faultable {
			links = append(links, l)
		}
	}
	return links
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		upstream := p.upstream
		p.accepted++
		p.mu.Unlock()
		p.work.Go(func() { p.serve(client, upstream) })
	}
}

func (p *Proxy) serve(client net.Conn, upstream string) {
	server, err := net.Dial("tcp", upstream)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, server: server, dead: make(chan struct{}), budget: -1}
	if !p.add(l) {
		l.close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(l, server, client, false) })
	both.Go(func() { p.copy(l, client, server, true) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.links[l] = true
	}
	return !p.closed
}

// copy moves data in one direction, under the faults of the moment, and closes the link at its end.
func (p *Proxy) copy(l *link, to io.Writer, from io.Reader, fromServer bool) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if l.swallows() {
			// Both sides must see a connection that stays open, whatever the other one does.
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if n > 0 {
			p.hold(n)
		}
		if l.swallows() {
			continue
		}
		allowed := n
		if fromServer {
			allowed = l.take(n)
		}
		_, writeErr := to.Write(buffer[:allowed])
		if err != nil || writeErr != nil || allowed < n {
			l.close()
			return
		}
	}
}

// hold waits as long as n bytes have to.
func (p *Proxy) hold(n int) {
	p.mu.Lock()
	wait, rate, paused := p.delay, p.rate, p.paused
	p.mu.Unlock()
	if rate > 0 {
		wait += time.Duration(n) * time.Second / time.Duration(rate)
	}
	if wait > 0 {
		<-time.After(wait)
	}
	if paused != nil {
		<-paused
	}
}

func (l *link) swallows() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

// take spends n bytes of the budget and returns how many of them may pass.
func (l *link) take(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.budget < 0 {
		return n
	}
	n = min(n, l.budget)
	l.budget -= n
	return n
}

func (l *link) close() { _ = errors.Join(l.client.Close(), l.server.Close()) }

// close ends everything and waits for it.
func (p *Proxy) close() {
	p.Resume()
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	all := make([]*link, 0, len(p.links))
	for l := range p.links {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		l.close()
	}
	p.work.Wait()
}

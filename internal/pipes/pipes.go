// Package pipes is a network of pipes: nothing of it is outside the process, so that servers and
// clients can live in a synctest bubble.
package pipes

import (
	"context"
	"net"
	"sync"
)

// Network is a listener, and the way to it. [New] makes one. It is safe for concurrent use.
type Network struct {
	accepts chan net.Conn
	closed  chan struct{}
	close   func()
}

// New makes a network that listens until it is closed.
func New() *Network {
	n := &Network{accepts: make(chan net.Conn), closed: make(chan struct{})}
	n.close = sync.OnceFunc(func() { close(n.closed) })
	return n
}

// Accept waits for the next connection. After Close it fails with [net.ErrClosed].
func (n *Network) Accept() (net.Conn, error) {
	select {
	case conn := <-n.accepts:
		return conn, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener. Accepted connections stay open.
func (n *Network) Close() error { n.close(); return nil }

// Addr says nothing: there is one address.
func (n *Network) Addr() net.Addr { return &net.TCPAddr{} }

// Dial returns when the listener has accepted. Network and address do not matter. It fails when ctx
// ends, or after Close.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case n.accepts <- there:
		return here, nil
	case <-n.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

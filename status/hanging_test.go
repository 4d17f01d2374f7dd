package status_test

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/status"
)

// pipes is a listener within a bubble.
type pipes struct {
	accepts chan net.Conn
	closed  chan struct{}
	close   func()
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepts:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestAViewerThatHangsIsLetGo: viewers that do not read lose their places, which others get.
func TestAViewerThatHangsIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := new(status.Handler)
		page.Track("pods", reflector.Status{Synced: true})
		p := &pipes{accepts: make(chan net.Conn), closed: make(chan struct{})}
		p.close = sync.OnceFunc(func() { close(p.closed) })
		server := &http.Server{Handler: page}
		served := make(chan error, 1)
		go func() { served <- server.Serve(p) }()
		ask := func() net.Conn {
			here, there := net.Pipe()
			p.accepts <- there
			_, err := here.Write([]byte("GET / HTTP/1.1\r\nHost: page\r\nAccept: text/event-stream\r\n\r\n"))
			require.NoError(t, err)
			return here
		}
		answer := func(conn net.Conn) int {
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			return response.StatusCode
		}
		var hanging []net.Conn
		for range 100 {
			hanging = append(hanging, ask())
		}
		synctest.Wait()
		late := ask()
		require.Equal(t, http.StatusServiceUnavailable, answer(late))
		time.Sleep(time.Minute)
		next := ask()
		require.Equal(t, http.StatusOK, answer(next))
		for _, conn := range append(hanging, late, next) {
			conn.Close()
		}
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}

package status_test

import (
	"bufio"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/internal/pipes"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/status"
)

// TestAViewerThatHangsIsLetGo: viewers that do not read lose their places, which others get.
func TestAViewerThatHangsIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := new(status.Handler)
		page.Track("pods", reflector.Status{Synced: true})
		network := pipes.New()
		server := &http.Server{Handler: page}
		served := make(chan error, 1)
		go func() { served <- server.Serve(network) }()
		ask := func() net.Conn {
			conn, err := network.Dial(t.Context(), "", "")
			require.NoError(t, err)
			_, err = conn.Write([]byte("GET / HTTP/1.1\r\nHost: page\r\nAccept: text/event-stream\r\n\r\n"))
			require.NoError(t, err)
			return conn
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

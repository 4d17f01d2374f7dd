//go:build !race

package reviews_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// BenchmarkHandler is a request of a client that is known, and has the right.
func BenchmarkHandler(b *testing.B) {
	r := newReviews(b, newCluster())
	handler := r.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	request := httptest.NewRequest(http.MethodGet, pods+"?fieldSelector=spec.nodeName%3Dn1&watch=0", nil)
	request.Header.Set("Authorization", "Bearer alice's")
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(nil, request)
	}
	tokens, rights := r.Status().Tokens.Asked, r.Status().Rights.Asked
	require.LessOrEqual(b, tokens+rights, uint64(2+b.Elapsed()/time.Second))
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestAWatchBehindReviewsTakesFewBytes beside the same watch without them.
func TestAWatchBehindReviewsTakesFewBytes(t *testing.T) {
	const watches, most = 400, 3 << 10
	taken := map[string]int64{}
	for _, name := range []string{"warm up", "without", "behind"} {
		server, err := apiserver.NewServer()
		require.NoError(t, err)
		apiserver.Serve(server, builtin.Pods())
		c := newCluster()
		r := newReviews(t, c)
		handler := http.Handler(server)
		if name != "without" {
			handler = r.Handler(server)
		}
		listener := httptest.NewServer(handler)
		var connections []net.Conn
		before := int64(0)
		for i := range watches + 1 {
			if i == 1 { // what the first one makes is not counted
				before = liveHeap()
			}
			connection, err := net.Dial("tcp", strings.TrimPrefix(listener.URL, "http://"))
			require.NoError(t, err)
			connections = append(connections, connection)
			_, err = fmt.Fprintf(connection, "GET /api/v1/pods?watch=1&fieldSelector=spec.nodeName%%3Dn%d HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer alice's\r\n\r\n", i)
			require.NoError(t, err)
			answer, err := http.ReadResponse(bufio.NewReaderSize(connection, 1<<10), nil)
			require.NoError(t, err)
			require.Equal(t, 200, answer.StatusCode)
		}
		if name != "without" {
			require.Equal(t, watches+1, r.Status().Watches)
		}
		c.change(func() { c.rights = nil })
		taken[name] = (liveHeap() - before) / watches
		for _, connection := range connections {
			require.NoError(t, connection.Close())
		}
		server.Close()
		listener.Close()
		require.NoError(t, server.Shutdown(t.Context()))
		require.Zero(t, r.Status().Watches)
		runtime.KeepAlive(r)
	}
	t.Logf("%d bytes for each watch, %d behind reviews, of a right that no other watch has", taken["without"], taken["behind"])
	require.Less(t, taken["behind"]-taken["without"], int64(most))
}

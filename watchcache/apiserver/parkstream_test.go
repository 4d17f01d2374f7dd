package apiserver_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/tributary-go/tributary/watchcache/apiserver"
)

// TestParkedStreamsCostNoGoroutine: of the server. Its client has one for each.
func TestParkedStreamsCostNoGoroutine(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "TLS"}[encrypted], func(t *testing.T) {
			const watches = 200
			r := newStreamParkingRig(t)
			if encrypted {
				listener := httptest.NewUnstartedServer(r.Server)
				listener.EnableHTTP2 = true
				require.NoError(t, apiserver.ConfigureHTTP2(listener.Config))
				listener.StartTLS()
				defer listener.Close()
				r.url, r.web = listener.URL, listener.Client()
			}
			a := r.create(t, pod("a"))
			before := runtime.NumGoroutine()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answers := make([]*bufio.Reader, watches)
			for i := range watches {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet,
					r.url+"/api/v1/pods?watch=1&resourceVersion="+a.ResourceVersion, nil)
				require.NoError(t, err)
				answer, err := r.web.Do(request)
				require.NoError(t, err)
				defer answer.Body.Close()
				require.Equal(t, 2, answer.ProtoMajor)
				answers[i] = bufio.NewReaderSize(answer.Body, 16)
			}
			const ofTheCheck, ofConnections = 2, 12
			for range 3 {
				eventually(t, func() bool { return r.Parked() == watches }, "all are parked")
				eventually(t, func() bool {
					return runtime.NumGoroutine() <= before+watches+ofTheCheck+ofConnections
				}, "no goroutine is left but the client's")
				a = r.relabel(t, a)
				for _, answer := range answers {
					line, err := answer.ReadString('\n')
					require.NoError(t, err)
					require.Contains(t, line, `"resourceVersion":"`+a.ResourceVersion+`"`)
				}
			}
			cancel()
			eventually(t, func() bool { return r.Parked() == 0 }, "their client has gone")
		})
	}
}

// overHTTP2 opens watches that have been parked.
func (r *rig) overHTTP2(t testing.TB, watches int) (bodies []*bufio.Reader) {
	t.Helper()
	for range watches {
		bodies = append(bodies, r.watch(t, "", wireJSON).body)
	}
	eventually(t, func() bool { return r.Parked() == watches }, "all are parked")
	return bodies
}

// TestShutdownEndsParkedStreams: each gets a proper end, and the http.Server's Shutdown waits for
// those that go on.
func TestShutdownEndsParkedStreams(t *testing.T) {
	for _, first := range []string{"the server of collections", "the http.Server"} {
		t.Run(first, func(t *testing.T) {
			r := newStreamParkingRig(t)
			bodies := r.overHTTP2(t, 20)
			a := r.create(t, pod("a"))
			stopped := make(chan error, 1)
			if first == "the http.Server" {
				go func() { stopped <- r.listener.Shutdown(t.Context()) }()
				_, err := r.web.Get(r.url + "/readyz")
				for err == nil { // until it listens no more
					_, err = r.web.Get(r.url + "/readyz")
				}
			}
			r.relabel(t, a)
			for _, body := range bodies {
				for _, event := range []string{"ADDED", "MODIFIED"} {
					line, err := body.ReadString('\n')
					require.NoError(t, err)
					require.Contains(t, line, event)
				}
			}
			require.NoError(t, r.Shutdown(t.Context()))
			require.Zero(t, r.Parked())
			for _, body := range bodies {
				rest, err := io.ReadAll(body)
				require.NoError(t, err, "a stream without its end is an error")
				require.Empty(t, rest)
			}
			if first == "the http.Server" {
				require.NoError(t, <-stopped)
			}
		})
	}
}

// TestAWriterThatHidesItsInnerOneIsNotParked: what the handler writes may be changed on the way.
func TestAWriterThatHidesItsInnerOneIsNotParked(t *testing.T) {
	r := newStreamParkingRig(t)
	r.listener.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.ServeHTTP(struct {
			http.ResponseWriter
			http.Flusher
		}{w, w.(http.Flusher)}, q)
	})
	a := r.create(t, pod("a"))
	body := r.watch(t, "resourceVersion="+a.ResourceVersion, wireJSON).body
	r.relabel(t, a)
	line, err := body.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "MODIFIED")
	require.Zero(t, r.Parked())
}

// TestConnStateHasTheConnectionThatNetHTTPKnows, though x/net sees ours.
func TestConnStateHasTheConnectionThatNetHTTPKnows(t *testing.T) {
	r := newParkingRig(t)
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	var mu sync.Mutex // guards known
	known := map[net.Conn][]http.ConnState{}
	web := &http.Server{Handler: r.Server, Protocols: protocols, ConnState: func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		known[c] = append(known[c], state)
	}}
	require.NoError(t, apiserver.ConfigureHTTP2(web))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	transport := &http.Transport{Protocols: protocols}
	answer, err := (&http.Client{Transport: transport}).Get("http://" + listener.Addr().String() + "/readyz")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	transport.CloseIdleConnections()
	require.NoError(t, web.Shutdown(t.Context()))
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, known, 1)
	for _, states := range known {
		require.Contains(t, states, http.StateIdle)
		require.Contains(t, states, http.StateClosed)
	}
}

// TestBadReadersOfStreamsLeaveNothingBehind: clients that never read, that read a byte now and
// then, or that come and go many times, on streams and on connections. After them, memory and
// goroutines are what they were.
func TestBadReadersOfStreamsLeaveNothingBehind(t *testing.T) {
	const connections, each, writes, most = 10, 50, 20, 8 << 20
	visits := 20_000
	if testing.Short() {
		visits = 500
	}
	r := newStreamParkingRig(t)
	fat := pod("fat")
	fat.Annotations = map[string]string{"text": strings.Repeat("x", 16<<10)}
	last := r.create(t, fat)
	healthy := r.watchPath(t, "/api/v1/pods?watch=1", wireJSON)
	healthy.skip(wireJSON)
	eventually(t, func() bool { return r.Parked() == 1 }, "it is parked")
	before, goroutines := liveHeap(), runtime.NumGoroutine()

	open := func() (net.Conn, *http2.Framer) {
		connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		require.NoError(t, err)
		require.NoError(t, connection.(*net.TCPConn).SetReadBuffer(4<<10))
		return connection, beginHTTP2(t, connection, 1<<20)
	}
	watch := func(framer *http2.Framer, id uint32) {
		askHTTP2(t, framer, id, "/api/v1/pods?watch=1&resourceVersion=0")
	}
	var bad []net.Conn
	for range connections {
		connection, framer := open()
		bad = append(bad, connection)
		for i := range uint32(each) {
			watch(framer, 2*i+1)
		}
	}
	for i := range writes {
		last = r.relabel(t, last)
		healthy.skip(wireJSON)
		for _, connection := range bad[:connections/2] { // the others never read
			_, err := connection.Read(make([]byte, 1))
			require.NoError(t, err, i)
		}
	}
	for _, connection := range bad {
		require.NoError(t, connection.Close())
	}
	connection, framer := open()
	framer.SetMaxReadFrameSize(1 << 20)
	received := make(chan struct{})
	go func() { // all that the server sends to this one
		defer close(received)
		_, _ = io.Copy(io.Discard, connection)
	}()
	for i := range uint32(visits) {
		watch(framer, 2*i+1)
		require.NoError(t, framer.WriteRSTStream(2*i+1, http2.ErrCodeCancel))
	}
	require.NoError(t, connection.Close())
	<-received
	const ofTheCheck = 2
	eventually(t, func() bool {
		return runtime.NumGoroutine() <= goroutines+ofTheCheck && r.Parked() == 1
	}, "the watches end")
	live := liveHeap() - before
	t.Logf("%d KB more are live", live>>10)
	require.Less(t, live, int64(most))
	r.relabel(t, last)
	healthy.skip(wireJSON)
	runtime.KeepAlive(r)
}

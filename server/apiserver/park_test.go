package apiserver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// connectionOf opens a watch of pods by hand, so that the client has no goroutine for it.
func (r *rig) connectionOf(t testing.TB, query string) (net.Conn, *http.Response) {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { connection.Close() })
	_, err = fmt.Fprintf(connection, "GET /api/v1/pods?watch=1&%s HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n", query)
	require.NoError(t, err)
	answer, err := http.ReadResponse(bufio.NewReaderSize(connection, 1<<10), nil)
	require.NoError(t, err)
	return connection, answer
}

// relabel updates a pod.
func (r *rig) relabel(t testing.TB, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	p = p.DeepCopy()
	p.Labels = map[string]string{"after": p.ResourceVersion}
	p, err := r.pods.Update(p)
	require.NoError(t, err)
	return p
}

// TestParkedWatchesCostNoGoroutine: they have one while there are events, and are ended when their
// client has gone. After that, goroutines and memory are what they were.
func TestParkedWatchesCostNoGoroutine(t *testing.T) {
	const watches, most = 300, 4 << 10
	r := newParkingRig(t)
	a := r.create(t, pod("a"))
	r.connectionOf(t, "timeoutSeconds=1") // what the first one makes stays
	eventually(t, func() bool { return r.Parked() == 0 }, "the first one ends")
	goroutines, heap := runtime.NumGoroutine(), liveHeap()

	connections, answers := make([]net.Conn, watches), make([]*bufio.Reader, watches)
	for i := range watches {
		connection, answer := r.connectionOf(t, "resourceVersion="+a.ResourceVersion)
		connections[i], answers[i] = connection, bufio.NewReaderSize(answer.Body, 16)
		require.Equal(t, []string{"chunked"}, answer.TransferEncoding)
		require.True(t, answer.Close)
	}
	const ofTheCheck = 2 // eventually has a goroutine for the condition
	idle := func() bool { return r.Parked() == watches && runtime.NumGoroutine() <= goroutines+ofTheCheck }
	for range 3 {
		eventually(t, idle, "no goroutine is left")
		r.ProbeParked()
		a = r.relabel(t, a)
		for _, answer := range answers {
			line, err := answer.ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, `{"type":"MODIFIED"`)
			require.Contains(t, line, `"resourceVersion":"`+a.ResourceVersion+`"`)
		}
	}
	eventually(t, idle, "no goroutine is left")
	for _, connection := range connections {
		require.NoError(t, connection.Close())
	}
	require.Equal(t, watches, r.Parked())
	eventually(t, func() bool {
		r.ProbeParked()
		return r.Parked() == 0 && runtime.NumGoroutine() <= goroutines+ofTheCheck
	}, "watches whose client has gone end")
	clear(connections)
	clear(answers)
	live := liveHeap() - heap
	t.Logf("%d bytes per watch that has ended", live/watches)
	require.Less(t, live/watches, int64(most))
	runtime.KeepAlive(r)
}

// TestShutdownWaitsForParkedWatches: each has a proper end, unless the context of Shutdown ends
// first. The ordinary watches are for http.Server.Shutdown to wait for.
func TestShutdownWaitsForParkedWatches(t *testing.T) {
	r := newParkingRig(t)
	r.create(t, pod("a"))
	var ended sync.WaitGroup
	defer ended.Wait()
	for range 20 {
		_, answer := r.connectionOf(t, "")
		body := bufio.NewReader(answer.Body)
		_, err := body.ReadString('\n')
		require.NoError(t, err)
		ended.Go(func() {
			// A body without its last chunk is an error.
			if rest, err := io.ReadAll(body); err != nil || len(rest) > 0 {
				t.Errorf("%q: %v", rest, err)
			}
		})
	}
	require.Equal(t, 20, r.Parked())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Shutdown(t.Context()))
	require.Zero(t, r.Parked())
	require.NoError(t, r.Shutdown(gone), "nobody is left")
}

// TestWatchesThatCannotBeParked are served as usual, over HTTP/2 and over TLS.
func TestWatchesThatCannotBeParked(t *testing.T) {
	for name, protocol := range map[string]string{"HTTP/2": "HTTP/2.0", "TLS": "HTTP/1.1"} {
		t.Run(name, func(t *testing.T) {
			r := newParkingRig(t)
			r.create(t, pod("a"))
			secure := httptest.NewUnstartedServer(r.Server)
			secure.EnableHTTP2 = name == "HTTP/2"
			secure.StartTLS()
			defer secure.Close()
			defer r.Close()
			answer, err := secure.Client().Get(secure.URL + "/api/v1/pods?watch=1")
			require.NoError(t, err)
			defer answer.Body.Close()
			require.Equal(t, protocol, answer.Proto)
			line, err := bufio.NewReader(answer.Body).ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, "ADDED")
			require.Zero(t, r.Parked())
		})
	}
}

// wrapped is a listener whose connections cannot be probed.
type wrapped struct{ net.Listener }

func (w wrapped) Accept() (net.Conn, error) {
	connection, err := w.Listener.Accept()
	return struct{ net.Conn }{connection}, err
}

// TestAWrappedConnectionIsReadInstead: its client is noticed to have gone at once.
func TestAWrappedConnectionIsReadInstead(t *testing.T) {
	r := newParkingRig(t)
	listener := httptest.NewUnstartedServer(r.Server)
	listener.Listener = wrapped{listener.Listener}
	listener.Start()
	defer listener.Close()
	r.url = listener.URL
	connection, _ := r.connectionOf(t, "")
	require.Equal(t, 1, r.Parked())
	require.NoError(t, connection.Close())
	eventually(t, func() bool { return r.Parked() == 0 }, "nobody has probed it")
}

// TestAPanicEndsAParkedWatch, and not the program, as in a handler of net/http.
func TestAPanicEndsAParkedWatch(t *testing.T) {
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	secrets := builtin.Of[*corev1.Secret]()
	secrets.View.Columns = []apiserver.Column[*corev1.Secret]{{Name: "Type", Value: func(*corev1.Secret) any { panic("on purpose") }}}
	collection := apiserver.Serve(s, secrets, apiserver.ParkIdleWatches())
	_, err = collection.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
	require.NoError(t, err)
	var logged strings.Builder
	listener := httptest.NewUnstartedServer(s)
	listener.Config.ErrorLog = log.New(&logged, "", 0)
	listener.Start()
	defer listener.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, listener.URL+"/api/v1/secrets?watch=1", nil)
	require.NoError(t, err)
	request.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	answer, err := listener.Client().Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	_, err = io.ReadAll(answer.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "this is no whole answer")
	require.NoError(t, s.Shutdown(t.Context()))
	require.Contains(t, logged.String(), "on purpose")
}

// hijackable is an answer over a connection in memory.
type hijackable struct {
	recorded
	connection net.Conn
}

func (h *hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.connection, nil, nil }

// parkedOverPipe is a server with one watch of pods, whose client is at the other end of a pipe: it
// has read as often as said, and each write waits for a read.
func parkedOverPipe(t *testing.T, reads int) (*apiserver.Server, net.Conn) {
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	pods := apiserver.Serve(s, builtin.Pods(), apiserver.ParkIdleWatches())
	_, err = pods.Create(pod("a"))
	require.NoError(t, err)
	client, connection := net.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods?watch=1", nil)
	require.NoError(t, err)
	s.ServeHTTP(&hijackable{connection: connection}, request)
	for range reads {
		_, err := client.Read(make([]byte, 1<<10))
		require.NoError(t, err)
	}
	synctest.Wait()
	require.Equal(t, 1, s.Parked())
	return s, client
}

// TestAParkedReaderThatIsSlowIsCut: a client that takes nothing for 30 seconds is cut, in the head
// of the answer or in an event.
func TestAParkedReaderThatIsSlowIsCut(t *testing.T) {
	for name, reads := range map[string]int{"no head": 0, "no event": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := parkedOverPipe(t, reads)
				time.Sleep(29 * time.Second)
				synctest.Wait()
				require.Equal(t, 1, s.Parked())
				time.Sleep(time.Second)
				synctest.Wait()
				require.Zero(t, s.Parked())
			})
		})
	}
}

// TestShutdownGivesUpOnAClientThatDoesNotRead, when its context says so.
func TestShutdownGivesUpOnAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := parkedOverPipe(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Shutdown(ctx), context.Canceled)
		require.NoError(t, client.Close())
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

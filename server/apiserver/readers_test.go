package apiserver_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
)

// countedWrites is an answer that counts how often it is written to.
type countedWrites struct {
	recorded
	writes int
}

func (w *countedWrites) Write(b []byte) (int, error) {
	w.writes++
	return w.recorded.Write(b)
}

// watched is the answer to a watch of a second, on a clock that need not wait for it.
func watched(t *testing.T, w http.ResponseWriter, path string, fill func(*testing.T, *rig)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := apiserver.NewServer()
		require.NoError(t, err)
		defer s.Close()
		fill(t, &rig{
			Server: s, pods: apiserver.Serve(s, builtin.Pods()),
			configMaps: apiserver.Serve(s, builtin.Of[*corev1.ConfigMap]()),
		})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path+"?watch=1&timeoutSeconds=1", nil)
		require.NoError(t, err)
		request.Header.Set("Accept", wireProtobuf)
		s.ServeHTTP(w, request)
	})
}

// TestABurstIsFewWrites: the events that a watcher takes at once become one write, as far as they
// fit into 32 KiB.
func TestABurstIsFewWrites(t *testing.T) {
	w := &countedWrites{}
	watched(t, w, "/api/v1/pods", func(t *testing.T, r *rig) {
		for i := range 100 {
			r.create(t, pod(fmt.Sprint("pod-", i)))
		}
	})
	require.Greater(t, len(w.body), 8<<10)
	require.LessOrEqual(t, w.writes, 1+len(w.body)/(32<<10))
}

// flushed is an answer that notes how much came at once.
type flushed struct {
	recorded
	sent  int
	sizes []int
}

func (w *flushed) Flush() {
	w.sizes = append(w.sizes, len(w.body)-w.sent)
	w.sent = len(w.body)
}

// TestFewBytesAreInHand: what is encoded for a client before it has taken the rest is bounded in
// bytes, however large the objects are.
func TestFewBytesAreInHand(t *testing.T) {
	const objects, size, most = 20, 300 << 10, 1 << 20
	w := &flushed{}
	watched(t, w, "/api/v1/configmaps", func(t *testing.T, r *rig) {
		for i := range objects {
			_, err := r.configMaps.Create(&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("fat-", i)},
				Data:       map[string]string{"text": strings.Repeat("x", size)},
			})
			require.NoError(t, err)
		}
	})
	require.Greater(t, len(w.body), objects*size)
	require.Less(t, slices.Max(w.sizes), most+2*size)
}

// TestBadReadersLeaveNothingBehind: clients that never read, read a byte after each write, or come
// and go many times cost the others no event. After them, memory and goroutines are what they were.
func TestBadReadersLeaveNothingBehind(t *testing.T) {
	const each, writes, most = 100, 60, 8 << 20
	visits := 20_000
	if testing.Short() {
		visits = 500
	}
	r := newRig(t, watchcache.WithWindowBytes(4<<20))
	fat := pod("fat")
	fat.Annotations = map[string]string{"text": strings.Repeat("x", 64<<10)}
	last := r.create(t, fat)
	host := strings.TrimPrefix(r.url, "http://")
	open := func() net.Conn {
		connection, err := net.Dial("tcp", host)
		require.NoError(t, err)
		require.NoError(t, connection.(*net.TCPConn).SetReadBuffer(4<<10))
		_, err = fmt.Fprint(connection, "GET /api/v1/pods?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		return connection
	}
	healthy := r.watchPath(t, "/api/v1/pods?watch=1", wireJSON)
	healthy.skip(wireJSON)
	http.DefaultClient.CloseIdleConnections()
	before, goroutines := liveHeap(), runtime.NumGoroutine()

	var silent, slow []net.Conn
	for range each {
		silent, slow = append(silent, open()), append(slow, open())
	}
	for i := range writes {
		next := last.DeepCopy()
		next.Labels = map[string]string{"i": fmt.Sprint(i)}
		var err error
		last, err = r.pods.Update(next)
		require.NoError(t, err)
		healthy.skip(wireJSON)
		for _, connection := range slow {
			_, err := connection.Read(make([]byte, 1))
			require.NoError(t, err)
		}
	}
	for _, connection := range append(silent, slow...) {
		require.NoError(t, connection.Close())
	}
	var visitors sync.WaitGroup
	for range 8 {
		visitors.Go(func() {
			for range visits / 8 {
				connection := open()
				line, err := bufio.NewReaderSize(connection, 64).ReadSlice('\n')
				if err != nil || !strings.Contains(string(line), "200") {
					t.Errorf("%q: %v", line, err)
				}
				_ = connection.Close()
			}
		})
	}
	visitors.Wait()
	const ofTheCheck = 2 // eventually has a goroutine for the condition
	eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+ofTheCheck }, "the watches end")
	live := liveHeap() - before
	t.Logf("%d KB more are live", live>>10)
	require.Less(t, live, int64(most), "the window's bytes, and nothing else")
	runtime.KeepAlive(r)
}

package sources_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/internal/pipes"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
)

// wire is a network to an API server, which can be taken away.
type wire struct {
	*pipes.Network
	away     atomic.Bool
	silent   atomic.Bool
	asleep   atomic.Bool  // the reader of the updates
	slow     atomic.Bool  // watches send 64 bytes at a time
	noList   atomic.Bool  // lists are forbidden, and watches are not
	requests atomic.Int32 // probes apart
	probes   atomic.Int32

	mu   sync.Mutex // guards open
	open []net.Conn
}

func (w *wire) Accept() (net.Conn, error) {
	conn, err := w.Network.Accept()
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open = append(w.open, conn)
	}
	return conn, err
}

func (w *wire) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if w.away.Load() {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return w.Network.Dial(ctx, network, address)
}

// takeAway cuts all connections, and refuses further ones.
func (w *wire) takeAway() {
	w.away.Store(true)
	w.cut()
}

// awaitFlow blocks while the way is silent: nothing comes over it, and nothing fails.
func (w *wire) awaitFlow() {
	for w.silent.Load() {
		time.Sleep(time.Second)
	}
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.open {
		conn.Close()
	}
	w.open = nil
}

// trickling is the answer to a watch over a slow way.
type trickling struct {
	http.ResponseWriter
	wire *wire
}

func (t trickling) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t trickling) Write(p []byte) (n int, err error) {
	t.wire.awaitFlow()
	for t.wire.slow.Load() && err == nil && n < len(p) {
		var some int
		some, err = t.ResponseWriter.Write(p[n:min(n+64, len(p))])
		n += some
		_ = http.NewResponseController(t.ResponseWriter).Flush()
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil || n == len(p) {
		return n, err
	}
	rest, err := t.ResponseWriter.Write(p[n:])
	return n + rest, err
}

// agent is an agent in a bubble: what its updates come to, and its sources.
type agent struct {
	*wire
	pods    *listwatchtest.Origin[*corev1.Pod]
	api     atomic.Pointer[listwatchtest.Server] // that answers now
	sources *sources.Sources

	holds sync.Mutex                // guards held
	held  map[types.UID]*corev1.Pod // by the updates
}

// holding returns the pods that the updates have come to.
func (a *agent) holding() map[types.UID]*corev1.Pod {
	a.holds.Lock()
	defer a.holds.Unlock()
	return maps.Clone(a.held)
}

// take follows an update.
func (a *agent) take(update sources.PodUpdate) {
	a.holds.Lock()
	defer a.holds.Unlock()
	for _, pod := range update.Pods {
		if a.held[pod.UID] = pod; update.Op == sources.Remove {
			delete(a.held, pod.UID)
		}
	}
}

// startAgent runs an agent until the test ends.
func startAgent(t *testing.T, options ...reflector.Option) *agent {
	w := &wire{Network: pipes.New()}
	a := &agent{wire: w, held: map[types.UID]*corev1.Pod{}}
	a.serve(t)
	server := &http.Server{Handler: http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		if limit := r.URL.Query().Get("limit"); limit == "1" || limit == "300" {
			w.probes.Add(1)
		} else {
			w.requests.Add(1)
		}
		w.awaitFlow()
		if r.URL.Query().Has("watch") {
			answer = trickling{answer, w}
		} else if w.noList.Load() {
			http.Error(answer, "forbidden", http.StatusForbidden)
			return
		}
		a.api.Load().ServeHTTP(answer, r)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(w) }()
	transport := &http.Transport{DialContext: w.Dial}
	client, err := listwatch.NewRESTClient(&rest.Config{Host: "http://api", Transport: transport}, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	a.sources = sources.New("node-1", sources.WithLogger(logr.Discard()), sources.APIServer(client, options...))
	ctx, cancel := context.WithCancel(t.Context())
	ended, read := make(chan error, 1), make(chan struct{})
	go func() { ended <- a.sources.Run(ctx) }()
	go func() {
		defer close(read)
		for update := range a.sources.Updates() {
			a.take(update)
			for a.asleep.Load() {
				time.Sleep(time.Second)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		<-read
		a.api.Load().Origin().Close()
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
		transport.CloseIdleConnections()
	})
	return a
}

// serve has an empty API server answer from here on.
func (a *agent) serve(t *testing.T) {
	api := listwatchtest.NewServer(t)
	a.pods = listwatchtest.Serve(api, listwatchtest.Pods()).Origin()
	if before := a.api.Swap(api); before != nil {
		before.Origin().Close()
	}
}

func (a *agent) create(t *testing.T, name, image string) {
	t.Helper()
	_, err := a.pods.Create(podOf(name, image, uid(""), onNode("node-1")))
	require.NoError(t, err)
}

// requireTruth: the updates and Merged are what the server has.
func (a *agent) requireTruth(t *testing.T) {
	t.Helper()
	synctest.Wait()
	want := map[types.UID]string{}
	for _, pod := range a.pods.Snapshot().All() {
		if pod.Spec.NodeName == "node-1" {
			want[pod.UID] = fmt.Sprint(pod.Name, pod.Spec.Containers[0].Image, pod.Labels, pod.Status.Message, pod.DeletionTimestamp)
		}
	}
	told, merged := map[types.UID]string{}, map[types.UID]string{}
	of := func(pod *corev1.Pod) string {
		labels := pod.Labels
		return fmt.Sprint(pod.Name, pod.Spec.Containers[0].Image, labels, pod.Status.Message, pod.DeletionTimestamp)
	}
	for uid, pod := range a.holding() {
		told[uid] = of(pod)
	}
	for _, pod := range a.sources.Merged() {
		merged[pod.Pod.UID] = of(pod.Pod)
	}
	require.Equal(t, want, merged)
	require.Equal(t, want, told)
}

// TestADayWithoutTheServer: an agent keeps its pods for 24 hours without the API server, says so,
// and loses nothing of what has changed meanwhile: created, changed, deleted, and created again.
func TestADayWithoutTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startAgent(t)
		for i := range 30 {
			a.create(t, fmt.Sprint("p", i), "v1")
		}
		<-a.sources.Synced()
		time.Sleep(time.Second)
		a.requireTruth(t)
		a.takeAway()
		for hour := range 24 {
			a.create(t, fmt.Sprint("new", hour), "v1")
			name := fmt.Sprint("p", hour)
			pod, err := a.pods.Get("default", name)
			require.NoError(t, err)
			pod = pod.DeepCopy()
			switch hour % 4 {
			case 0:
				pod.Labels = map[string]string{"hour": fmt.Sprint(hour)}
				_, err = a.pods.Update(pod)
			case 1:
				pod.Status.Message = fmt.Sprint("at ", hour)
				_, err = a.pods.UpdateStatus(pod)
			case 2:
				_, err = a.pods.Remove("default", name)
			case 3:
				_, err = a.pods.Remove("default", name)
				a.create(t, name, "v2")
			}
			require.NoError(t, err)
			time.Sleep(time.Hour)
			synctest.Wait()
			require.Len(t, a.holding(), 30, "nothing is lost, and nothing is made up")
			require.Len(t, a.sources.Merged(), 30)
			require.Error(t, a.sources.Ready(time.Minute))
			require.False(t, a.sources.SafeToPrune(sources.APISource))
			state := a.sources.Status()[0]
			require.Equal(t, reflector.Unreachable, state.Reflector.Class)
			require.ErrorIs(t, state.Reflector.Err, syscall.ECONNREFUSED)
		}
		a.away.Store(false)
		time.Sleep(4 * time.Second) // a refused server is asked again every two seconds
		a.requireTruth(t)
		time.Sleep(15 * time.Second) // until a probe proves that the watch brings everything
		require.NoError(t, a.sources.Ready(time.Minute))
		require.True(t, a.sources.SafeToPrune(sources.APISource))
	})
}

// TestAQuietDay: while nothing happens, an agent makes two requests an hour at most, and probes of
// one object each about once a minute. It is ready, and its pods are safe to prune, all the time.
func TestAQuietDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startAgent(t)
		a.create(t, "web", "v1")
		<-a.sources.Synced()
		time.Sleep(time.Second)
		a.requests.Store(0)
		a.probes.Store(0)
		for hour := range 24 {
			time.Sleep(time.Hour)
			synctest.Wait()
			require.LessOrEqual(t, a.requests.Load(), int32(2*(hour+1)))
			require.LessOrEqual(t, a.probes.Load(), int32(67*(hour+1)))
			require.NoError(t, a.sources.Ready(3*time.Minute))
			require.True(t, a.sources.SafeToPrune(sources.APISource))
		}
		require.GreaterOrEqual(t, a.probes.Load(), int32(24*60))
		require.Positive(t, a.requests.Load())
		a.requireTruth(t)
	})
}

// TestRareProofs: the interval of proofs moves the bound at which the source is stale.
func TestRareProofs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startAgent(t, reflector.WithProof(15*time.Minute))
		<-a.sources.Synced()
		synctest.Wait()
		for range 200 {
			require.NoError(t, a.sources.Ready(31*time.Minute))
			require.True(t, a.sources.SafeToPrune(sources.APISource))
			time.Sleep(time.Minute)
		}
		require.Less(t, a.probes.Load(), int32(30))
	})
}

// TestNothingIsSafeToPruneWhileTheCopyCatchesUp: pods were bound while the API server was away. The
// first event after the outage says that the server is there, and not that it has told the others.
func TestNothingIsSafeToPruneWhileTheCopyCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startAgent(t)
		a.create(t, "before", "v1")
		<-a.sources.Synced()
		time.Sleep(time.Minute)
		require.True(t, a.sources.SafeToPrune(sources.APISource))
		a.takeAway()
		for i := range 30 {
			a.create(t, fmt.Sprint("p", i), "v1")
		}
		time.Sleep(10 * time.Second)
		a.slow.Store(true)
		a.away.Store(false)
		caughtUp := 0
		for range 900 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if len(a.holding()) > 1 && len(a.holding()) < 31 {
				caughtUp++
			}
			if a.sources.SafeToPrune(sources.APISource) {
				require.Equal(t, 31, len(a.holding()))
			}
		}
		require.Greater(t, caughtUp, 20, "the copy was caught up with in no time, and nothing was judged")
		require.True(t, a.sources.SafeToPrune(sources.APISource))
	})
}

// TestARoleThatMayNotList: a watch brings the first state, and watch lists prove it afterwards, as
// no probe is answered.
func TestARoleThatMayNotList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := startAgent(t)
		a.noList.Store(true)
		for range 20 {
			time.Sleep(time.Minute)
			synctest.Wait()
			require.NoError(t, a.sources.Ready(3*time.Minute))
			require.True(t, a.sources.SafeToPrune(sources.APISource))
		}
		_, err := a.pods.Create(podOf("p", "v1", uid(""), onNode("node-1")))
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Len(t, a.holding(), 1)
	})
}

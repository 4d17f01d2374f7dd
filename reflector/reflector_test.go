package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // the default, which a test that reads logs does not use
	goleak.VerifyTestMain(m)
}

// forever is a source that lists n pods, one per pause, and then watches in silence; or that fails
// with err.
type forever struct {
	n     int
	pause time.Duration
	err   error
}

func (f forever) IsWatchListSemanticsUnSupported() bool { return true }

func (f forever) List(ctx context.Context, _ metav1.ListOptions) listwatch.List[*corev1.Pod] {
	return listwatch.List[*corev1.Pod]{
		Meta: func() metav1.ListMeta { return metav1.ListMeta{ResourceVersion: "9"} },
		Items: func(yield func(*corev1.Pod, error) bool) {
			if f.err != nil {
				yield(nil, f.err)
				return
			}
			for i := range f.n {
				select {
				case <-time.After(f.pause):
				case <-ctx.Done():
					yield(nil, ctx.Err())
					return
				}
				if !yield(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), ResourceVersion: "1"}}, nil) {
					return
				}
			}
		},
	}
}

func (f forever) Watch(ctx context.Context, _ metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		<-ctx.Done()
		yield(listwatch.Event[*corev1.Pod]{}, ctx.Err())
	}
}

// TestRunEndsAtOnceInEveryState stops a reflector while it lists, watches and waits: Run returns at
// that very moment of the simulated clock, and the bubble would fail on a goroutine left behind.
func TestRunEndsAtOnceInEveryState(t *testing.T) {
	for name, c := range map[string]struct {
		source forever
		phase  reflector.Phase
	}{
		"listing":  {forever{n: 1000, pause: time.Second}, reflector.Listing},
		"watching": {forever{n: 1}, reflector.Watching},
		"waiting":  {forever{err: apierrors.NewTooManyRequests("later", 3600)}, reflector.Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				r := reflector.New(c.source, store.NewIndexer[*corev1.Pod]())
				ended := make(chan error)
				go func() { ended <- r.Run(ctx) }()
				time.Sleep(10 * time.Second) // of the simulated clock
				synctest.Wait()
				require.Equal(t, c.phase, r.Status().Phase)
				before := time.Now()
				cancel()
				require.NoError(t, <-ended)
				require.Equal(t, before, time.Now())
				require.Equal(t, reflector.Stopped, r.Status().Phase)
			})
		})
	}
}

func TestWaitSyncedNamesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no role"))
		r := reflector.New[*corev1.Pod](forever{err: forbidden}, store.NewIndexer[*corev1.Pod]())
		go r.Run(ctx)
		err := r.WaitSynced(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(t, err, "no role")
		status := r.Status()
		require.Equal(t, reflector.Forbidden, status.Class)
		require.False(t, status.Synced)
		require.Equal(t, status.Attempts, status.Failures)
		require.Contains(t, status.String(), "forbidden since")
		synctest.Wait()
	})
}

func TestFinalErrorEndsRun(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "")
	r := reflector.New[*corev1.Pod](forever{err: notFound}, store.NewIndexer[*corev1.Pod](), reflector.WithFinalErrors())
	require.True(t, apierrors.IsNotFound(r.Run(t.Context())))
}

func TestRunTwice(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := reflector.New[*corev1.Pod](forever{}, store.NewIndexer[*corev1.Pod]())
	require.NoError(t, r.Run(ctx))
	require.ErrorContains(t, r.Run(ctx), "called twice")
}

func TestBadOptionsNameThemselves(t *testing.T) {
	for want, option := range map[string]reflector.Option{
		"WithLiveness(0s)":      reflector.WithLiveness(0),
		"WithBackoff(1m0s, 1s)": reflector.WithBackoff(time.Minute, time.Second),
		"WithWatchTimeout(1ms)": reflector.WithWatchTimeout(time.Millisecond),
		"WithPageSize(-1)":      reflector.WithPageSize(-1),
		"WithMetrics(nil)":      reflector.WithMetrics(nil),
	} {
		r := reflector.New[*corev1.Pod](forever{}, store.NewIndexer[*corev1.Pod](), option)
		require.ErrorContains(t, r.Run(t.Context()), want)
		require.ErrorContains(t, reflector.Validate(option), want)
	}
	require.NoError(t, reflector.Validate(reflector.WithFinalErrors()))
}

// stopsEarly is a store that takes the first item of a list and says that all is well.
type stopsEarly struct{ store.Indexer[*corev1.Pod] }

func (s *stopsEarly) Replace(items iter.Seq2[*corev1.Pod, error], _ func() string) error {
	for range items {
		break
	}
	return nil
}

func TestAStoreThatDoesNotReadTheListIsNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r := reflector.New[*corev1.Pod](forever{n: 3}, &stopsEarly{})
		require.NoError(t, r.Run(ctx))
		require.False(t, r.Status().Synced)
		require.Equal(t, reflector.StoreError, r.Status().Class)
	})
}

// world is a real server over HTTP with pods that change at random.
type world struct {
	t       *testing.T
	random  *rand.Rand
	pods    *listwatchtest.Origin[*corev1.Pod]
	client  rest.Interface
	padding string // makes events as large as a test needs
}

func newWorld(t *testing.T) *world {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	api := listwatchtest.NewServer(t, watchcache.WithBookmarkInterval(50*time.Millisecond), watchcache.WithWindow(64))
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 4)), pods: listwatchtest.Serve(api, listwatchtest.Pods()).Origin()}
	server := httptest.NewServer(api)
	t.Cleanup(func() { api.Origin().Close(); server.Close() })
	var err error
	w.client, err = listwatch.NewRESTClient(&rest.Config{Host: server.URL, QPS: -1}, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	t.Cleanup(w.client.(*rest.RESTClient).Client.CloseIdleConnections)
	return w
}

// change makes n random changes.
func (w *world) change(n int) {
	for range n {
		name := fmt.Sprintf("pod-%d", w.random.IntN(40))
		pod, err := w.pods.Get("default", name)
		switch {
		case apierrors.IsNotFound(err):
			_, err = w.pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
		case w.random.IntN(4) == 0:
			_, err = w.pods.Remove("default", name)
		default:
			pod = pod.DeepCopy()
			pod.Spec.NodeName = fmt.Sprintf("node-%d", w.random.IntN(3))
			pod.Labels = map[string]string{"round": strconv.Itoa(w.random.Int())}
			pod.Annotations = map[string]string{"padding": w.padding}
			_, err = w.pods.Update(pod)
		}
		require.NoError(w.t, err)
	}
}

// requireEqual waits until the copy is the server's state.
func (w *world) requireEqual(pods *store.Indexer[*corev1.Pod], r *reflector.Reflector[*corev1.Pod]) {
	w.t.Helper()
	want := w.pods.Snapshot()
	require.Eventually(w.t, func() bool { return sameVersions(want, pods.Snapshot()) },
		20*time.Second, 2*time.Millisecond, "the copy is not the server's state: %s", r.Status())
}

func sameVersions(a, b store.Snapshot[*corev1.Pod]) bool {
	if a.Len() != b.Len() {
		return false
	}
	for key, pod := range a.All() {
		if held, ok := b.Get(key); !ok || held.ResourceVersion != pod.ResourceVersion || held.UID != pod.UID {
			return false
		}
	}
	return true
}

// TestFollowsARealServer: over HTTP, in both encodings, with and without watch lists, through
// changes, compaction of the server's history and stalls of the reader that make it fall out of the
// server's window.
func TestFollowsARealServer(t *testing.T) {
	for name, options := range map[string][]listwatch.Option{
		"protobuf, watch list": nil,
		"protobuf, list":       {listwatch.WithoutWatchList()},
		"JSON, watch list":     {listwatch.WithJSON()},
		"JSON, list":           {listwatch.WithJSON(), listwatch.WithoutWatchList()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.change(100)
			pods := &store.Indexer[*corev1.Pod]{}
			st := &gate{Indexer: pods, open: make(chan struct{})}
			close(st.open)
			r := reflector.New(listwatch.FromClient[corev1.Pod](w.client, "pods", options...), st,
				reflector.WithBackoff(time.Millisecond, 10*time.Millisecond))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- r.Run(ctx) }()
			require.NoError(t, r.WaitSynced(ctx))
			for range 5 {
				w.change(40)
				w.requireEqual(pods, r)
			}
			w.pods.Compact()
			w.change(200) // more than the window holds: a reader that is behind gets a 410
			w.requireEqual(pods, r)
			require.Eventually(t, func() bool { return pods.Snapshot().ResourceVersion() == w.pods.Snapshot().ResourceVersion() },
				10*time.Second, 2*time.Millisecond, "a bookmark brings the store to the server's version")
			require.Contains(t, []reflector.Class{reflector.OK, reflector.CatchingUp}, r.Status().Class)
			require.Positive(t, r.Status().Events)
			cancel()
			require.NoError(t, <-ended)
		})
	}
}

// TestHeldUpStoreFallsOutOfTheWindow: while the store does not take an event, the server moves on
// beyond its window; the reflector lists once more and then has everything, deletions included.
func TestHeldUpStoreFallsOutOfTheWindow(t *testing.T) {
	w := newWorld(t)
	w.change(60)
	pods := &store.Indexer[*corev1.Pod]{}
	st := &gate{Indexer: pods, open: make(chan struct{}), entered: make(chan struct{}, 1)}
	r := reflector.New(listwatch.FromClient[corev1.Pod](w.client, "pods"), st, reflector.WithBackoff(time.Millisecond, 10*time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	require.NoError(t, r.WaitSynced(ctx))
	w.change(1)
	<-st.entered
	w.padding = strings.Repeat("x", 8<<10)
	w.change(4000) // 30 MB: more than sockets buffer
	close(st.open)
	w.requireEqual(pods, r)
	// The store has a list's state before the list is counted.
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		assert.Equal(t, map[reflector.Class]int{reflector.OK: 1, reflector.Expired: 1}, r.Status().Lists)
	}, 20*time.Second, 2*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}

// gate is an indexer whose Add, Update and Delete wait until it is open.
type gate struct {
	*store.Indexer[*corev1.Pod]
	open    chan struct{}
	entered chan struct{}
}

func (g *gate) pass() {
	select {
	case g.entered <- struct{}{}:
	default:
	}
	<-g.open
}

func (g *gate) Add(p *corev1.Pod) error    { g.pass(); return g.Indexer.Add(p) }
func (g *gate) Update(p *corev1.Pod) error { g.pass(); return g.Indexer.Update(p) }
func (g *gate) Delete(p *corev1.Pod) error { g.pass(); return g.Indexer.Delete(p) }

// measured keeps what a reflector measures.
type measured struct {
	lists   []reflector.ListStats
	watches []reflector.WatchStats
}

func (m *measured) ListEnded(s reflector.ListStats)   { m.lists = append(m.lists, s) }
func (m *measured) WatchEnded(s reflector.WatchStats) { m.watches = append(m.watches, s) }

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 70*time.Second)
		defer cancel()
		var m measured
		r := reflector.New(forever{n: 3, pause: time.Second}, store.NewIndexer[*corev1.Pod](), reflector.WithMetrics(&m),
			reflector.WithWatchTimeout(10*time.Second))
		require.NoError(t, r.Run(ctx))
		require.Equal(t, []reflector.ListStats{{Cause: reflector.OK, Class: reflector.OK, Duration: 3 * time.Second, Items: 3}}, m.lists)
		require.Len(t, m.watches, 1, "the second was stopped")
		lasted := m.watches[0].Duration
		require.True(t, 40*time.Second <= lasted && lasted <= 50*time.Second, "%s: the server did not end it in its time", lasted)
		require.Equal(t, []reflector.WatchStats{{Class: reflector.OK, Duration: lasted}}, m.watches)
	})
}

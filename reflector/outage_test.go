package reflector_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// TestManyCopiesThroughAnOutage: many copies share one client and its limiter. Their server goes
// away for a while. They ask it less often meanwhile than client-go's informers do, and are fresh
// no later.
func TestManyCopiesThroughAnOutage(t *testing.T) {
	for _, row := range []outage{{20, 5, 15 * time.Second}, {100, 5, 10 * time.Second}, {250, 20, 10 * time.Second},
		{300, 5, 10 * time.Second}, {1000, -1, 15 * time.Second}} {
		t.Run(row.String(), func(t *testing.T) {
			play := func(start copyOf) (result outageResult) {
				synctest.Test(t, func(t *testing.T) {
					server := listwatchtest.NewServer(t)
					result = row.play(t, server, server.Config(), 5*time.Minute, start)
				})
				return result
			}
			ours, theirs := play(ourCopy), play(theirCopy)
			t.Logf("ours: %v", ours)
			t.Logf("client-go: %v", theirs)
			require.LessOrEqual(t, ours.synced, theirs.synced+time.Second)
			require.LessOrEqual(t, ours.asked, theirs.asked)
			require.LessOrEqual(t, ours.fresh, theirs.fresh)
		})
	}
}

// BenchmarkManyCopies is the same over HTTP, in real time: run it with -benchtime 1x.
func BenchmarkManyCopies(b *testing.B) {
	for _, row := range []outage{{100, 5, 10 * time.Second}, {250, 20, 10 * time.Second}, {300, 5, 10 * time.Second}} {
		for name, start := range map[string]copyOf{"tributary": ourCopy, "client-go": theirCopy} {
			b.Run(row.String()+"/"+name, func(b *testing.B) {
				for b.Loop() {
					server := listwatchtest.NewServer(b)
					result := row.play(b, server, server.Listen(), time.Second, start)
					b.ReportMetric(result.synced.Seconds(), "synced-s")
					b.ReportMetric(float64(result.asked), "requests-while-away")
					b.ReportMetric(result.fresh.Seconds(), "fresh-s")
				}
			})
		}
	}
}

// outage is the play: so many copies over one client, and a server that is away for a while.
type outage struct {
	copies int
	qps    float32
	away   time.Duration
}

func (o outage) String() string {
	return fmt.Sprintf("copies=%d,QPS=%v,away=%s", o.copies, o.qps, o.away)
}

// outageResult has the times of a play, and the requests while the server was away.
type outageResult struct {
	synced time.Duration // from the start until all copies are
	asked  int64         // requests while the server was away
	fresh  time.Duration // from the server's return until all copies have what was written then
}

func (r outageResult) String() string {
	return fmt.Sprintf("synced after %s, %d requests to the dead server, fresh after %s", r.synced, r.asked, r.fresh)
}

// copyOf starts a copy of the pods of a namespace, and returns a function that looks one up.
type copyOf func(ctx context.Context, running *sync.WaitGroup, client *kubernetes.Clientset, namespace string) (synced func() bool, get func(name string) bool)

func ourCopy(ctx context.Context, running *sync.WaitGroup, client *kubernetes.Clientset, namespace string) (func() bool, func(string) bool) {
	st := store.NewIndexer[*corev1.Pod]()
	r := reflector.New(listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods", listwatch.InNamespace(namespace)), st)
	running.Go(func() { _ = r.Run(ctx) })
	return func() bool { return r.Status().Synced }, func(name string) bool {
		_, ok := st.Get(store.Key(namespace, name))
		return ok
	}
}

func theirCopy(ctx context.Context, running *sync.WaitGroup, client *kubernetes.Clientset, namespace string) (func() bool, func(string) bool) {
	lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	informer := cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
	running.Go(func() { informer.RunWithContext(ctx) })
	return informer.HasSynced, func(name string) bool {
		_, ok, _ := informer.GetStore().GetByKey(store.Key(namespace, name))
		return ok
	}
}

// play lets all copies sync and follow for a while before the server goes away.
func (o outage) play(t testing.TB, server *listwatchtest.Server, config *rest.Config, before time.Duration, start copyOf) (result outageResult) {
	pods := listwatchtest.Serve(server, listwatchtest.Pods())
	create := func(name string) {
		for i := range o.copies {
			pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("ns-%d", i), Name: name}})
		}
	}
	create("before")
	road := &road{}
	config.QPS, config.Burst = o.qps, int(2*o.qps)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		road.next = next
		return road
	})
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	synced, get := make([]func() bool, o.copies), make([]func(string) bool, o.copies)
	for i := range o.copies {
		synced[i], get[i] = start(ctx, &running, client, fmt.Sprintf("ns-%d", i))
	}
	result.synced = until(t, o.copies, func(i int) bool { return synced[i]() })
	time.Sleep(before)
	road.closed.Store(true)
	pods.Disconnect()
	time.Sleep(o.away)
	result.asked = road.refused.Load()
	create("after")
	road.closed.Store(false)
	result.fresh = until(t, o.copies, func(i int) bool { return get[i]("after") })
	return result
}

// until returns the time after which something is done for all copies.
func until(t testing.TB, copies int, done func(i int) bool) time.Duration {
	began := time.Now()
	for i := 0; i < copies; {
		if done(i) {
			i++
			continue
		}
		if time.Since(began) > 5*time.Minute {
			t.Fatalf("%d of %d after %s", i, copies, time.Since(began))
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(began)
}

// road is the way to a server, which can be closed.
type road struct {
	next    http.RoundTripper
	closed  atomic.Bool
	refused atomic.Int64
}

// RoundTrip implements [http.RoundTripper].
func (r *road) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.closed.Load() {
		r.refused.Add(1)
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return r.next.RoundTrip(request)
}

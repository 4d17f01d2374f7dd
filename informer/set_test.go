package informer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

var (
	podsResource  = corev1.SchemeGroupVersion.WithResource("pods")
	nodesResource = corev1.SchemeGroupVersion.WithResource("nodes")
)

type fakePods = listwatchtest.Collection[*corev1.Pod]

func newPods(t *testing.T, names ...string) *fakePods {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	for _, name := range names {
		createPod(pods, "ns", name)
	}
	return pods
}

func createPod(pods *fakePods, namespace, name string) *corev1.Pod {
	return pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

// startSet runs a set until stop, which returns Run's error. The end of the test stops it too.
func startSet(t *testing.T, s *informer.Set) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ran
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

func acquire(t *testing.T, s *informer.Set, options ...listwatch.Option) *informer.Lease[*corev1.Pod] {
	t.Helper()
	l, err := informer.Acquire[corev1.Pod](s, podsResource, options...)
	require.NoError(t, err)
	return l
}

// TestLeasesShareOneWatch counts requests at an HTTP server: equal scopes share one watch, however
// their options are written. The last Close ends the watch and frees the copy.
func TestLeasesShareOneWatch(t *testing.T) {
	pods := newPods(t, "a", "b")
	server := pods.Server()
	set := informer.NewSet(server.Listen())
	startSet(t, set)

	node := listwatch.Fields(fields.OneTermNotEqualSelector("spec.nodeName", "n9"))
	first := acquire(t, set, listwatch.InNamespace("ns"), node)
	second := acquire(t, set, node, listwatch.InNamespace("ns"))
	require.NoError(t, first.WaitSynced(t.Context()))
	require.NoError(t, second.WaitSynced(t.Context()))
	require.Equal(t, 2, first.Snapshot().Len())
	a, _ := first.Snapshot().Get("ns/a")
	same, _ := second.Snapshot().Get("ns/a")
	assertSame(t, a, same)
	server.AwaitWatches(1)

	other := acquire(t, set)
	metadata, err := informer.Acquire[metav1.PartialObjectMetadata](set, podsResource, listwatch.InNamespace("ns"), node)
	require.NoError(t, err)
	server.AwaitWatches(3)
	require.Len(t, server.Requests(listwatchtest.Watch), 3, "another scope and another type have watches of their own")
	var names []string
	for _, c := range set.Status() {
		names = append(names, fmt.Sprintf("%d: %s", c.Leases, c.Name))
	}
	require.Equal(t, []string{
		"1: pods/v1 as *v1.PartialObjectMetadata, in ns, fields spec.nodeName!=n9",
		"1: pods/v1 as *v1.Pod",
		"2: pods/v1 as *v1.Pod, in ns, fields spec.nodeName!=n9",
	}, names)
	require.NoError(t, other.WaitSynced(t.Context()))
	require.NoError(t, metadata.WaitSynced(t.Context()))
	require.NoError(t, set.Ready(time.Minute))
	other.Close()
	metadata.Close()
	server.AwaitWatches(1)

	first.Close()
	first.Close()
	written := createPod(pods, "ns", "c")
	require.NoError(t, second.WaitFor(t.Context(), written), "the other lease goes on")
	server.AwaitWatches(1)
	require.Len(t, server.Requests(listwatchtest.Watch), 3)
	held, _ := second.Snapshot().Get("ns/c")
	object, copied := weak.Make(held), weak.Make(second)
	second.Close()
	<-second.Done()
	require.NoError(t, second.Err())
	server.AwaitWatches(0)
	require.Empty(t, set.Status())
	first, second, a, same, held = nil, nil, nil, nil, nil
	require.Eventually(t, func() bool {
		runtime.GC()
		return object.Value() == nil && copied.Value() == nil
	}, patience, time.Millisecond, "the memory of the copy is free")

	again := acquire(t, set, listwatch.InNamespace("ns"), node)
	require.NoError(t, again.WaitSynced(t.Context()))
	require.Equal(t, 3, again.Snapshot().Len(), "a new lease begins anew")
	again.Close()
}

// TestHandlersEndWithTheirLease: the handlers of another lease of the same copy go on.
func TestHandlersEndWithTheirLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t, "a")
		set := informer.NewSet(pods.Server().Config())
		stop := startSet(t, set)
		first, second := acquire(t, set), acquire(t, set)
		var mine, others, looped recorder
		h, err := first.AddHandler(mine.handle)
		require.NoError(t, err)
		_, err = second.AddHandler(others.handle)
		require.NoError(t, err)
		loop := make(chan struct{})
		go func() {
			defer close(loop)
			for e := range first.Events(t.Context()) {
				looped.handle(e)
			}
		}()
		for _, r := range []*recorder{&mine, &others, &looped} {
			require.Len(t, r.take(), 1)
		}
		first.Close()
		require.EqualError(t, first.Ready(time.Hour), "the lease is closed", "the set runs on")
		<-loop
		require.NoError(t, h.WaitSynced(t.Context()))
		createPod(pods, "ns", "b")
		require.Empty(t, mine.take())
		require.Empty(t, looped.take())
		require.Len(t, others.take(), 1)
		_, err = first.AddHandler(mine.handle)
		require.ErrorContains(t, err, "the lease is closed")
		for range first.Events(t.Context()) {
			t.Error("an event after Close")
		}
		require.Len(t, set.Status()[0].Handlers, 1)

		require.NoError(t, stop())
		_, err = informer.Acquire[corev1.Pod](set, podsResource)
		require.ErrorIs(t, err, informer.ErrStopped)
		_, err = second.AddHandler(others.handle)
		require.ErrorIs(t, err, informer.ErrStopped)
		second.Close()
	})
}

// TestFailureOfOneCopyIsItsOwn: a refused copy shows its error, and the other copies stay fresh.
// With final errors, its lease returns the cause, and the next Acquire makes a new copy.
func TestFailureOfOneCopyIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t, "a")
		nodes := listwatchtest.Serve(pods.Server(), listwatchtest.Of[*corev1.Node]())
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil)
		list := nodes.Fail(listwatchtest.List, forbidden, listwatchtest.UntilLifted())
		for _, final := range []bool{false, true} {
			var options []informer.Option
			if final {
				options = append(options, informer.WithReflector(reflector.WithFinalErrors()))
			}
			set := informer.NewSet(pods.Server().Config(), options...)
			stop := startSet(t, set)
			refused, err := informer.Acquire[corev1.Node](set, nodesResource)
			require.NoError(t, err)
			healthy := acquire(t, set)
			require.NoError(t, healthy.WaitSynced(t.Context()))
			time.Sleep(10 * time.Second) // simulated time
			require.Equal(t, reflector.Forbidden, refused.Status().Class)
			require.NoError(t, healthy.Ready(time.Minute))
			why := "not synced yet"
			if final {
				why = "Run has ended"
			}
			require.ErrorContains(t, set.Ready(time.Minute), "nodes/v1 as *v1.Node: "+why+" (forbidden")
			require.Equal(t, final, refused.Err() != nil)
			if final {
				<-refused.Done()
				require.True(t, apierrors.IsForbidden(refused.Err()))
				list.Lift()
				again, err := informer.Acquire[corev1.Node](set, nodesResource)
				require.NoError(t, err)
				require.NoError(t, again.WaitSynced(t.Context()))
				refused.Close()
				require.Len(t, set.Status(), 2, "the end of the old lease is not that of the new one")
			}
			require.NoError(t, stop())
		}
	})
}

func TestPanicInALeaseEndsTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t, "a")
		set := informer.NewSet(pods.Server().Config())
		lease := acquire(t, set)
		_, err := lease.AddHandler(func(podEvent) { panic("isolated") }, informer.WithIsolation())
		require.NoError(t, err)
		ran := make(chan error, 1)
		go func() { ran <- set.Run(t.Context()) }()
		synctest.Wait()
		require.Empty(t, ran)
		_, err = acquire(t, set, listwatch.InNamespace("ns")).AddHandler(func(podEvent) { panic("oh") }, informer.WithName("mine"))
		require.NoError(t, err)
		require.EqualError(t, <-ran, `informer: handler "mine" panicked: oh (at added ns/a)`)
		require.ErrorContains(t, set.Run(t.Context()), "called twice")
	})
}

func TestSetsRefuse(t *testing.T) {
	set := informer.NewSet(&rest.Config{Host: "http://127.0.0.1:1"}, informer.WithRing(0))
	_, err := informer.Acquire[corev1.Pod](set, podsResource)
	require.ErrorContains(t, err, "WithRing(0)")
	require.ErrorContains(t, set.Run(t.Context()), "WithRing(0)")

	set = informer.NewSet(&rest.Config{Host: "http://127.0.0.1:1"})
	_, err = informer.Acquire[corev1.Pod](set, schema.GroupVersionResource{Resource: "pods"})
	require.ErrorContains(t, err, "give a version")
	unused := acquire(t, set)
	h, err := unused.AddHandler(func(podEvent) {})
	require.NoError(t, err)
	unused.Close() // closed before Run
	require.ErrorIs(t, h.WaitSynced(t.Context()), informer.ErrStopped)
	require.Empty(t, set.Status())
	lease := acquire(t, set, listwatch.InNamespace("ns"))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "a", ResourceVersion: "1"}}
	require.ErrorContains(t, lease.WaitFor(t.Context(), pod), "wait for other/a: this collection holds namespace ns only")
	lease.Close()

	_, err = informer.Acquire[corev1.Pod](informer.NewSet(&rest.Config{Host: "http://a:b:c"}), podsResource)
	require.ErrorContains(t, err, "acquire pods/v1 as *v1.Pod")
}

func TestIndexesOfASetGoToTheirType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t, "a")
		byName := store.NewIndex("name", func(p *corev1.Pod) []string { return []string{p.Name} })
		zones := store.NewIndex("zone", func(n *corev1.Node) []string { return []string{n.Labels["zone"]} })
		set := informer.NewSet(pods.Server().Config(), informer.WithIndexes(byName), informer.WithIndexes(zones))
		startSet(t, set)
		lease := acquire(t, set)
		require.NoError(t, lease.WaitSynced(t.Context()))
		require.Equal(t, 1, byName.Len(lease.Snapshot(), "a"))
	})
}

// TestLeasesComeAndGo takes and closes leases of a few scopes from many goroutines. No lease sees
// less than the server had, and in the end no copy is left.
func TestLeasesComeAndGo(t *testing.T) {
	pods := newPods(t, "a")
	set := informer.NewSet(pods.Server().Config())
	stop := startSet(t, set)
	seed := rand.Uint64()
	t.Log("seed", seed)
	var work sync.WaitGroup
	for worker := range uint64(8) {
		work.Go(func() {
			random := rand.New(rand.NewPCG(seed, worker))
			for range 20 {
				var options []listwatch.Option
				if random.IntN(2) == 0 {
					options = append(options, listwatch.InNamespace("ns"))
				}
				lease, err := informer.Acquire[corev1.Pod](set, podsResource, options...)
				if err != nil {
					t.Error(err)
					return
				}
				told := make(chan struct{}, 1)
				_, err = lease.AddHandler(func(podEvent) { told <- struct{}{} })
				if err != nil {
					t.Error(err)
				}
				if random.IntN(3) > 0 {
					<-told
				}
				lease.Close()
			}
		})
	}
	work.Wait()
	require.Empty(t, set.Status())
	pods.Server().AwaitWatches(0)
	require.NoError(t, stop())
	for _, r := range pods.Server().Requests() {
		require.True(t, strings.HasPrefix(r.String(), "watch pods"), r.String())
	}
}

// TestSetWaitsForAllCopies: a set is synced when all leased copies are; the error names the copy
// that is not. A copy that is returned meanwhile is not waited for.
func TestSetWaitsForAllCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t, "a")
		set := informer.NewSet(pods.Server().Config())
		require.NoError(t, set.WaitSynced(t.Context()), "nothing is leased")
		all := acquire(t, set)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, set.WaitSynced(soon), "nobody has called Run of the set")
		startSet(t, set)
		require.NoError(t, set.WaitSynced(t.Context()))
		require.True(t, all.Status().Synced)

		pods.Fail(listwatchtest.List, apierrors.NewForbidden(podsResource.GroupResource(), "", nil), listwatchtest.UntilLifted())
		refused := acquire(t, set, listwatch.InNamespace("other"))
		soon, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := set.WaitSynced(soon)
		require.ErrorContains(t, err, "pods/v1 as *v1.Pod, in other: ")
		require.True(t, apierrors.IsForbidden(err), err)
		waited := make(chan error, 1)
		go func() { waited <- set.WaitSynced(t.Context()) }()
		synctest.Wait()
		refused.Close()
		require.NoError(t, <-waited)
	})
}

// TestIndexesOfALease: each lease declares what it reads by. The copy has all their indexes until
// its last lease is closed.
func TestIndexesOfALease(t *testing.T) {
	pods := newPods(t, "a", "b")
	set := informer.NewSet(pods.Server().Config())
	startSet(t, set)
	byName := store.NewIndex("name", func(p *corev1.Pod) []string { return []string{p.Name} })
	byNamespace := store.ByNamespace[*corev1.Pod]()
	first := acquire(t, set)
	first.AddIndexes(byName)
	require.NoError(t, set.WaitSynced(t.Context()))
	second := acquire(t, set)
	second.AddIndexes(byNamespace, byName)
	first.Close()
	require.Equal(t, 1, byName.Len(second.Snapshot(), "a"))
	require.Equal(t, 2, byNamespace.Len(second.Snapshot(), "ns"))
	second.Close()
	again := acquire(t, set)
	require.NoError(t, set.WaitSynced(t.Context()))
	require.Panics(t, func() { byName.Len(again.Snapshot(), "a") }, "another copy")
}

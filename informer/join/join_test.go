package join_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/join"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a fake cluster with an informer of each of three kinds.
type world struct {
	pods     *listwatchtest.Collection[*corev1.Pod]
	nodes    *listwatchtest.Collection[*corev1.Node]
	services *listwatchtest.Collection[*corev1.Service]

	podInformer     *informer.Informer[*corev1.Pod]
	nodeInformer    *informer.Informer[*corev1.Node]
	serviceInformer *informer.Informer[*corev1.Service]
}

func newWorld(t testing.TB) *world {
	w := &world{
		pods:     listwatchtest.New(t, listwatchtest.Pods()),
		nodes:    listwatchtest.New(t, listwatchtest.Of[*corev1.Node]()),
		services: listwatchtest.New(t, listwatchtest.Of[*corev1.Service]()),
	}
	w.podInformer = informer.New(w.pods.ListerWatcher())
	w.nodeInformer = informer.New(w.nodes.ListerWatcher())
	w.serviceInformer = informer.New(w.services.ListerWatcher())
	return w
}

func meta(namespace, name, value string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"value": value}}
}

// TestMoments: random writes to three kinds, while the function is at times slow. Each moment
// differs from the one before by the changes that it tells, and the last one is the server's state.
func TestMoments(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := newWorld(t)
		w.pods.Create(&corev1.Pod{ObjectMeta: meta("ns", "first", "")})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.podInformer.Run(ctx)
		go w.nodeInformer.Run(ctx)
		go w.serviceInformer.Run(ctx)
		var v join.View
		pods, nodes, services := join.Add(&v, w.podInformer), join.Add(&v, w.nodeInformer), join.Add(&v, w.serviceInformer)
		moments := 0
		mirror := map[string]string{}
		ended := make(chan error, 1)
		go func() {
			ended <- v.Run(ctx, func(now join.Moment) {
				moments++
				changes := apply(mirror, "pod", pods.Changes(now)) + apply(mirror, "node", nodes.Changes(now)) + apply(mirror, "service", services.Changes(now))
				require.Positive(t, changes, "moment %d", moments)
				held := map[string]string{}
				state(held, "pod", pods.In(now))
				state(held, "node", nodes.In(now))
				state(held, "service", services.In(now))
				require.Equal(t, held, mirror)
				if moments%3 == 0 {
					time.Sleep(time.Second)
				}
			})
		}()
		synctest.Wait()
		require.Equal(t, 1, moments)
		const writes = 200
		for i := range writes {
			name, value := fmt.Sprint("x", random.IntN(8)), strconv.Itoa(i)
			switch random.IntN(3) {
			case 0:
				put(w.pods, w.podInformer, &corev1.Pod{ObjectMeta: meta("ns", name, value)}, random)
			case 1:
				put(w.nodes, w.nodeInformer, &corev1.Node{ObjectMeta: meta("", name, value)}, random)
			case 2:
				put(w.services, w.serviceInformer, &corev1.Service{ObjectMeta: meta("ns", name, value)}, random)
			}
			if random.IntN(2) == 0 {
				time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.LessOrEqual(t, moments, writes+1)
		truth := map[string]string{}
		state(truth, "pod", w.podInformer.Snapshot())
		state(truth, "node", w.nodeInformer.Snapshot())
		state(truth, "service", w.serviceInformer.Snapshot())
		require.Equal(t, truth, mirror)
		cancel()
		require.NoError(t, <-ended)
	})
}

// put creates, changes or deletes an object.
func put[T store.Object](objects *listwatchtest.Collection[T], informed *informer.Informer[T], obj T, random *rand.Rand) {
	synctest.Wait() // the informer has the last write
	switch _, held := informed.Get(store.KeyOf(obj)); {
	case !held:
		objects.Create(obj)
	case random.IntN(3) == 0:
		objects.Delete(obj)
	default:
		objects.Update(obj)
	}
}

// state puts the value of each object into held.
func state[T store.Object](held map[string]string, kind string, now store.Snapshot[T]) {
	for key, obj := range now.All() {
		held[kind+" "+key] = obj.GetLabels()["value"]
	}
}

// apply does changes to a mirror of the state, and counts them.
func apply[T store.Object](mirror map[string]string, kind string, changes iter.Seq[store.Change[T]]) (n int) {
	for c := range changes {
		if n++; c.Deleted() {
			delete(mirror, kind+" "+c.Key)
		} else {
			mirror[kind+" "+c.Key] = c.New.GetLabels()["value"]
		}
	}
	return n
}

// TestCollectionThatEnds: Run says which one, at once, before the sync too.
func TestCollectionThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		go w.podInformer.Run(ctx)
		nodes, stopNodes := context.WithCancel(ctx)
		var v join.View
		join.Add(&v, w.podInformer)
		join.Add(&v, w.nodeInformer)
		moments := 0
		ended := make(chan error, 1)
		run := func() { ended <- v.Run(ctx, func(join.Moment) { moments++ }) }
		go run()
		synctest.Wait()
		require.Zero(t, moments, "before the nodes are synced")
		go w.nodeInformer.Run(nodes)
		synctest.Wait()
		require.Equal(t, 1, moments)
		stopNodes()
		err := <-ended
		require.ErrorIs(t, err, informer.ErrStopped)
		require.ErrorContains(t, err, "*v1.Node")
		go run()
		require.ErrorIs(t, <-ended, informer.ErrStopped, "once more")
		cancel()
		require.Error(t, new(join.View).Run(t.Context(), nil), "no collections")
	})
}

// TestForeignMoment: a moment is read by the parts of its own view.
func TestForeignMoment(t *testing.T) {
	w := newWorld(t)
	var v, other join.View
	join.Add(&v, w.podInformer)
	foreign := join.Add(&other, w.podInformer)
	require.Panics(t, func() { foreign.In(join.Moment{}) })
}

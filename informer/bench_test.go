package informer_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
)

// feed is a source that lists n pods and then brings one update per value of next, over the pods in turn. It costs
// both sides the same, a shallow copy of a pod for each update: no server and no decoding.
type feed struct {
	pods []*corev1.Pod
	next chan int // how many updates to bring now
	deep bool     // updates share nothing with the version before
}

func newFeed(n int) *feed {
	f := &feed{next: make(chan int), pods: make([]*corev1.Pod, n)}
	for i := range f.pods {
		f.pods[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: fmt.Sprint("pod-", i), UID: types.UID(fmt.Sprint("uid-", i)), ResourceVersion: strconv.Itoa(i + 1),
				Labels: map[string]string{"app": "web", "pod-template-hash": "6bdb5d5b8c"},
			},
			Spec: corev1.PodSpec{NodeName: fmt.Sprint("node-", i%100), Containers: []corev1.Container{{
				Name: "web", Image: "registry.example/web:1", Args: []string{strings.Repeat("x", 1000)},
			}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
		}
	}
	return f
}

func (f *feed) List(context.Context, metav1.ListOptions) listwatch.List[*corev1.Pod] {
	return listwatch.List[*corev1.Pod]{
		Meta: func() metav1.ListMeta { return metav1.ListMeta{ResourceVersion: strconv.Itoa(len(f.pods))} },
		Items: func(yield func(*corev1.Pod, error) bool) {
			for _, p := range f.pods {
				if !yield(p, nil) {
					return
				}
			}
		},
	}
}

func (f *feed) IsWatchListSemanticsUnSupported() bool { return true }

func (f *feed) Watch(ctx context.Context, _ metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		version := len(f.pods)
		for {
			select {
			case <-ctx.Done():
				yield(listwatch.Event[*corev1.Pod]{}, ctx.Err())
				return
			case n := <-f.next:
				for range n {
					pod := f.update(version)
					version++
					if !yield(listwatch.Event[*corev1.Pod]{Type: watch.Modified, Object: pod, ResourceVersion: pod.ResourceVersion}, nil) {
						return
					}
				}
			}
		}
	}
}

func (f *feed) update(version int) *corev1.Pod {
	old := f.pods[version%len(f.pods)]
	var pod *corev1.Pod
	if f.deep {
		pod = old.DeepCopy()
		pod.Spec.Containers[0].Args[0] = strings.Clone(pod.Spec.Containers[0].Args[0])
	} else {
		shallow := *old
		pod = &shallow
	}
	pod.ResourceVersion = strconv.Itoa(version + 1)
	f.pods[version%len(f.pods)] = pod
	return pod
}

// subject is an informer under measurement, ours or client-go's: handle gets the resource version of each object told.
type subject struct {
	name  string
	start func(t testing.TB, f *feed, handlers []func(resourceVersion string)) (stop func())
}

var subjects = []subject{{"tributary", startOurs}, {"client-go", startTheirs}}

func startOurs(t testing.TB, f *feed, handlers []func(string)) func() {
	i := informer.New[*corev1.Pod](f)
	for _, handle := range handlers {
		add(t, i, func(e podEvent) { handle(e.Object().ResourceVersion) })
	}
	stop := start(t, i)
	return func() { require.NoError(t, stop()) }
}

func startTheirs(t testing.TB, f *feed, handlers []func(string)) func() {
	i := cache.NewSharedIndexInformer(listwatch.ToClientGo(f), &corev1.Pod{}, 0, cache.Indexers{})
	for _, handle := range handlers {
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { handle(obj.(*corev1.Pod).ResourceVersion) },
			UpdateFunc: func(_, obj any) { handle(obj.(*corev1.Pod).ResourceVersion) },
			DeleteFunc: func(obj any) { handle(obj.(*corev1.Pod).ResourceVersion) },
		})
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { i.RunWithContext(ctx) })
	return func() {
		cancel()
		run.Wait()
	}
}

// BenchmarkDeliver is one update of a collection of 10,000 pods, from the source through the store until the last of the
// handlers has returned from it. Updates come in bursts of 1,000, which is within the ring: every handler is told every
// event, and the benchmark fails otherwise.
func BenchmarkDeliver(b *testing.B) {
	const pods, burst = 10_000, 1_000
	for _, handlers := range []int{1, 10, 100} {
		for _, s := range subjects {
			b.Run(fmt.Sprintf("%d handlers/%s", handlers, s.name), func(b *testing.B) {
				var told atomic.Int64
				reached := make(chan struct{}, 1)
				var goal atomic.Int64
				all := make([]func(string), handlers)
				for k := range all {
					all[k] = func(string) {
						if told.Add(1) == goal.Load() {
							reached <- struct{}{}
						}
					}
				}
				goal.Store(int64(pods * handlers))
				f := newFeed(pods)
				stop := s.start(b, f, all)
				<-reached
				b.ReportAllocs()
				b.ResetTimer()
				for done := 0; done < b.N; {
					n := min(burst, b.N-done)
					done += n
					goal.Add(int64(n * handlers))
					f.next <- n
					<-reached
				}
				b.StopTimer()
				b.ReportMetric(float64(b.N)*float64(handlers)/b.Elapsed().Seconds(), "deliveries/s")
				require.Equal(b, goal.Load(), told.Load())
				stop()
			})
		}
	}
}

// BenchmarkAddHandler adds a handler to a running informer of 50,000 pods, until it has returned from the last of them,
// and removes it.
func BenchmarkAddHandler(b *testing.B) {
	const pods = 50_000
	b.Run("tributary", func(b *testing.B) {
		i := informer.New[*corev1.Pod](newFeed(pods))
		start(b, i)
		require.NoError(b, i.WaitSynced(b.Context()))
		b.ReportAllocs()
		for b.Loop() {
			h := add(b, i, func(podEvent) {})
			<-h.Synced()
			h.Remove()
		}
	})
	b.Run("client-go", func(b *testing.B) {
		i := cache.NewSharedIndexInformer(listwatch.ToClientGo(newFeed(pods)), &corev1.Pod{}, 0, cache.Indexers{})
		ctx, cancel := context.WithCancel(context.Background())
		var run sync.WaitGroup
		run.Go(func() { i.RunWithContext(ctx) })
		require.True(b, cache.WaitForCacheSync(ctx.Done(), i.HasSynced))
		b.ReportAllocs()
		for b.Loop() {
			told := make(chan struct{})
			left := pods
			h, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				if left--; left == 0 {
					close(told) // HasSynced is polled elsewhere; this is kinder
				}
			}})
			require.NoError(b, err)
			<-told
			require.NoError(b, i.RemoveEventHandler(h))
		}
		cancel()
		run.Wait()
	})
}

// BenchmarkStalledHandler is what 200,000 events over 10,000 pods leave on the heap, with one handler that keeps up and
// one that stalls on its first event after the initial list; and without the latter. Each version of a pod is memory of
// its own, about 2.5 KB, which is the worst case: versions decoded by listwatch share most of it. Run it with
// -benchtime=1x.
func BenchmarkStalledHandler(b *testing.B) {
	const pods, events = 10_000, 200_000
	for _, stalled := range []bool{false, true} {
		for _, s := range subjects {
			b.Run(fmt.Sprintf("stalled=%t/%s", stalled, s.name), func(b *testing.B) {
				for b.Loop() {
					b.ReportMetric(heapAfter(b, s, stalled, pods, events)/1e6, "heap-MB")
				}
			})
		}
	}
}

func heapAfter(t testing.TB, s subject, stalled bool, pods, events int) float64 {
	before := heap()
	last := strconv.Itoa(pods + events)
	reached, listed, began, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	handlers := []func(string){func(v string) {
		if v == last {
			close(reached)
		}
	}}
	if stalled {
		count := 0
		handlers = append(handlers, func(string) {
			switch count++; count {
			case pods:
				close(listed)
			case pods + 1:
				close(began)
				<-goOn
			}
		})
	} else {
		close(listed)
		close(began)
	}
	f := newFeed(pods)
	f.deep = true
	stop := s.start(t, f, handlers)
	<-listed
	f.next <- 1
	<-began
	f.next <- events - 1
	select {
	case <-reached:
	case <-time.After(time.Minute):
		t.Fatal("the handler that keeps up does not")
	}
	after := heap()
	close(goOn)
	stop()
	runtime.KeepAlive(f)
	return after - before
}

// heap is what is in use after a collection, in bytes.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

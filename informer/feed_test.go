package informer_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
)

// feed is a source without server and decoding. It lists n pods; then each value of next is the
// number of updates to send, over the pods in turn. Every version of a pod has memory of its own.
type feed struct {
	pods []*corev1.Pod
	next chan int // the number of updates to send now
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
	pod := f.pods[version%len(f.pods)].DeepCopy()
	pod.Spec.Containers[0].Args[0] = strings.Clone(pod.Spec.Containers[0].Args[0])
	pod.ResourceVersion = strconv.Itoa(version + 1)
	f.pods[version%len(f.pods)] = pod
	return pod
}

// heapAfter returns the bytes that events over pods leave on the heap. A stalled handler stops at
// its first event after the initial list. Each version of a pod has 2.5 KB of its own: the worst
// case.
func heapAfter(t testing.TB, stalled bool, pods, events int) float64 {
	before := heap()
	last := strconv.Itoa(pods + events)
	reached, listed, began, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	f := newFeed(pods)
	i := informer.New[*corev1.Pod](f)
	add(t, i, func(e podEvent) {
		if e.Object().ResourceVersion == last {
			close(reached)
		}
	})
	if stalled {
		count := 0
		add(t, i, func(podEvent) {
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
	stop := start(t, i)
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
	require.NoError(t, stop())
	runtime.KeepAlive(f)
	return after - before
}

// heap returns the bytes in use after a garbage collection.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

package main

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
)

// feed is a source without a server and without decoding: it lists n pods and then brings as many
// updates as it is told to, over the pods in turn. What an update costs, a copy of a pod, is the
// same for both libraries. Not safe for concurrent use, but for next.
type feed struct {
	pods    []*corev1.Pod
	version int
	next    chan int // how many updates to bring now
	deep    bool     // updates share nothing with the version before
}

func newFeed(n int) *feed {
	f := &feed{pods: barePods(n), version: n, next: make(chan int)}
	for i, pod := range f.pods {
		pod.UID = types.UID(fmt.Sprint("uid-", i))
		pod.Labels = map[string]string{"app": "web", "pod-template-hash": "6bdb5d5b8c"}
		pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "registry.example/web:1", Args: []string{strings.Repeat("x", 1000)}}}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"}
	}
	return f
}

func (f *feed) List(context.Context, metav1.ListOptions) listwatch.List[*corev1.Pod] {
	return listwatch.List[*corev1.Pod]{
		Meta: func() metav1.ListMeta { return metav1.ListMeta{ResourceVersion: strconv.Itoa(f.version)} },
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
		for {
			select {
			case <-ctx.Done():
				yield(listwatch.Event[*corev1.Pod]{}, ctx.Err())
				return
			case n := <-f.next:
				for range n {
					pod := f.update()
					if !yield(listwatch.Event[*corev1.Pod]{Type: watch.Modified, Object: pod, ResourceVersion: pod.ResourceVersion}, nil) {
						return
					}
				}
			}
		}
	}
}

// update makes the next version of the next pod.
func (f *feed) update() *corev1.Pod {
	old := f.pods[f.version%len(f.pods)]
	var pod *corev1.Pod
	if f.deep {
		pod = old.DeepCopy()
		pod.Spec.Containers[0].Args[0] = strings.Clone(pod.Spec.Containers[0].Args[0])
	} else {
		shallow := *old
		pod = &shallow
	}
	f.pods[f.version%len(f.pods)] = pod
	f.version++
	pod.ResourceVersion = strconv.Itoa(f.version)
	return pod
}

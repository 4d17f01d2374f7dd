package heap_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/heap"
)

// makers make objects that share no memory, as a decoder without a memo does.
var makers = map[string]func(i int) any{
	"pods": func(i int) any {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("web-", i), Namespace: fmt.Sprint("team-", i%40), UID: types.UID(fmt.Sprintf("%036d", i)),
				Labels: map[string]string{"app": fmt.Sprint("app", i), "tier": fmt.Sprint("tier", i), "own": fmt.Sprint(i)},
				ManagedFields: []metav1.ManagedFieldsEntry{
					{Manager: fmt.Sprint("kubelet", i), FieldsV1: &metav1.FieldsV1{Raw: []byte(strings.Repeat(fmt.Sprint(i%10), 900))}},
				},
			},
			Spec: corev1.PodSpec{
				NodeName: fmt.Sprint("node-", i), NodeSelector: map[string]string{},
				Containers: []corev1.Container{{
					Name: fmt.Sprint("main", i), Image: fmt.Sprint("registry.example/app:", i),
					Env:       []corev1.EnvVar{{Name: fmt.Sprint("A", i), Value: fmt.Sprint(i)}, {Name: fmt.Sprint("B", i), Value: fmt.Sprint(i)}},
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceName(fmt.Sprint("cpu", i)): resource.MustParse("100m")}},
				}},
			},
		}
	},
	"secrets": func(i int) any {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s", i), Namespace: fmt.Sprint("ns", i)},
			Data:       map[string][]byte{fmt.Sprint("tls", i): make([]byte, 200+i%3000)},
		}
	},
	"unstructured": func(i int) any {
		all := make([]any, 0, 20)
		for j := range 20 {
			all = append(all, map[string]any{"name": fmt.Sprint(i, "-", j), "weight": int64(1000 + i), "share": float64(i) + 0.5, "on": true})
		}
		wide := map[string]any{}
		for j := range 30 {
			wide[fmt.Sprint("key", i, j)] = fmt.Sprint(j)
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"parts": all, "options": wide},
			"metadata": map[string]any{"name": fmt.Sprint("w", i), "namespace": "ns"},
		}}
	},
}

// freed returns the bytes that the garbage collector frees once make's result is dropped.
func freed(make func() []any) (objects []any, bytes uint64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	objects = make()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return objects, after.HeapAlloc - before.HeapAlloc - 16*uint64(cap(objects))
}

func estimated(objects []any) uint64 {
	var m heap.Meter
	for _, obj := range objects {
		m.Add(obj)
	}
	m.Out()
	return m.Bytes(len(objects))
}

// TestEstimateIsNearTheTruth: at any number of objects, with a sample of blocks and with all.
func TestEstimateIsNearTheTruth(t *testing.T) {
	for name, one := range makers {
		for _, count := range []int{200, 20_000} {
			t.Run(fmt.Sprint(name, "/", count), func(t *testing.T) {
				objects, truth := freed(func() []any {
					all := make([]any, 0, count)
					for i := range count {
						all = append(all, one(i))
					}
					return all
				})
				estimate := estimated(objects)
				t.Logf("%d bytes, %d estimated: %.3f", truth, estimate, float64(estimate)/float64(truth))
				require.InEpsilon(t, truth, estimate, 0.05)
				runtime.KeepAlive(objects)
			})
		}
	}
}

// TestSharedMemoryCountsOnce: 20,000 pods of 200 templates, which come in turns.
func TestSharedMemoryCountsOnce(t *testing.T) {
	objects, truth := freed(func() []any {
		var templates []*corev1.Pod
		for i := range 200 {
			templates = append(templates, makers["pods"](i).(*corev1.Pod))
		}
		all := make([]any, 0, 20_000)
		for i := range 20_000 {
			pod := *templates[i%200]
			pod.Name = fmt.Sprint("web-", i)
			all = append(all, &pod)
		}
		return all
	})
	require.InEpsilon(t, truth, estimated(objects), 0.1)
	runtime.KeepAlive(objects)
}

func TestNothingTakesNothing(t *testing.T) {
	var none *corev1.Pod
	require.Zero(t, estimated(nil))
	require.Zero(t, estimated([]any{none}))
}

// BenchmarkOf says what an estimate of 10,000 objects takes.
func BenchmarkOf(b *testing.B) {
	for name, one := range makers {
		var objects []any
		for i := range 10_000 {
			objects = append(objects, one(i))
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				estimated(objects)
			}
		})
	}
}

package content_test

import (
	"math/rand"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tributary-go/tributary/internal/content"
)

// TestShareKeepsContent: for every type of the scheme, with random content, an object that shares
// with another has the content that it had, and so has the other.
func TestShareKeepsContent(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Log("seed", seed)
	random := rand.New(rand.NewSource(seed))
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, random, scheme.Codecs)
	tried := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		with, err := scheme.Scheme.New(gvk)
		require.NoError(t, err)
		fill.Fill(with)
		other, err := scheme.Scheme.New(gvk)
		require.NoError(t, err)
		fill.Fill(other)
		partly := with.DeepCopyObject()
		mix(random, reflect.ValueOf(partly), reflect.ValueOf(other.DeepCopyObject()))
		for _, obj := range []runtime.Object{with.DeepCopyObject(), other, partly} {
			want, kept := obj.DeepCopyObject(), with.DeepCopyObject()
			content.Share(obj, with)
			require.Equal(t, want, obj, gvk)
			require.Equal(t, kept, with, gvk)
		}
		tried++
	}
	require.Greater(t, tried, 100)
}

// mix gives v some of the parts of another value.
func mix(random *rand.Rand, v, from reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !from.IsNil() {
			mix(random, v.Elem(), from.Elem())
		}
	case reflect.Slice:
		for i := range min(v.Len(), from.Len()) {
			mix(random, v.Index(i), from.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch {
			case !v.Type().Field(i).IsExported():
			case random.Intn(4) == 0:
				v.Field(i).Set(from.Field(i))
			default:
				mix(random, v.Field(i), from.Field(i))
			}
		}
	}
}

// TestShareShares: what is equal is held once, down to the parts of what differs.
func TestShareShares(t *testing.T) {
	whole := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.Now()},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "c", Ports: []corev1.ContainerPort{{ContainerPort: 80}}, LivenessProbe: &corev1.Probe{PeriodSeconds: 1}}, {Name: "d"},
		}, Volumes: []corev1.Volume{{Name: "v"}}},
	}
	pod := whole.DeepCopy()
	pod.Name, pod.Spec.Containers[0].Name, pod.Spec.Containers[0].LivenessProbe.PeriodSeconds = "b", "other", 2
	content.Share(pod, whole)
	require.Equal(t, "b", pod.Name)
	require.Same(t, &whole.Spec.Containers[0].Ports[0], &pod.Spec.Containers[0].Ports[0])
	require.NotSame(t, whole.Spec.Containers[0].LivenessProbe, pod.Spec.Containers[0].LivenessProbe)
	require.NotSame(t, &whole.Spec.Containers[0], &pod.Spec.Containers[0])
	require.Same(t, &whole.Spec.Volumes[0], &pod.Spec.Volumes[0])
	require.Equal(t, reflect.ValueOf(whole.Labels).Pointer(), reflect.ValueOf(pod.Labels).Pointer())

	nested := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"name": name, "list": []any{map[string]any{"a": int64(1)}, name}, "map": map[string]any{"b": "c"}}}
	}
	one, two := nested("one"), nested("two")
	content.Share(two, one)
	require.Equal(t, nested("two"), two)
	same := func(a, b any) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
	require.True(t, same(one.Object["map"], two.Object["map"]))
	require.True(t, same(one.Object["list"].([]any)[0], two.Object["list"].([]any)[0]))
	require.False(t, same(one.Object["list"], two.Object["list"]))
}

// TestShareWritesNothingElse: a program may have put parts of its own into an object.
func TestShareWritesNothingElse(t *testing.T) {
	with := &corev1.Pod{Spec: corev1.PodSpec{
		Affinity:   &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAffinity: &corev1.PodAffinity{}},
		Containers: []corev1.Container{{Name: "c", Args: []string{"a"}}},
	}}
	affinity := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	containers := []corev1.Container{{Name: "d", Args: []string{"a"}}}
	nodeAffinity, args := affinity.NodeAffinity, &containers[0].Args[0]
	pod := &corev1.Pod{Spec: corev1.PodSpec{Affinity: affinity, Containers: containers}}
	content.Share(pod, with)
	require.Same(t, with.Spec.Affinity.NodeAffinity, pod.Spec.Affinity.NodeAffinity)
	require.Same(t, &with.Spec.Containers[0].Args[0], &pod.Spec.Containers[0].Args[0])
	require.Same(t, nodeAffinity, affinity.NodeAffinity)
	require.Same(t, args, &containers[0].Args[0])

	list := []any{map[string]any{"a": "b"}, "d"}
	members := map[string]any{"list": list, "other": "x"}
	object := &unstructured.Unstructured{Object: members}
	other := &unstructured.Unstructured{Object: map[string]any{"list": []any{map[string]any{"a": "b"}, "c"}}}
	first := reflect.ValueOf(list[0]).Pointer()
	content.Share(object, other)
	require.Equal(t, reflect.ValueOf(other.Object["list"].([]any)[0]).Pointer(), reflect.ValueOf(object.Object["list"].([]any)[0]).Pointer())
	require.Equal(t, first, reflect.ValueOf(list[0]).Pointer())
	require.Equal(t, first, reflect.ValueOf(members["list"].([]any)[0]).Pointer())
}

// TestShareOfStrangers: values that cannot share are left alone.
func TestShareOfStrangers(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for _, with := range []any{nil, (*corev1.Pod)(nil), &corev1.Node{}, *pod} {
		content.Share(pod, with)
		content.Share(with, pod)
	}
	require.Equal(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, pod)
}

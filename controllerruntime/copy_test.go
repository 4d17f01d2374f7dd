package controllerruntime

import (
	"math/rand"
	"reflect"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// TestDeepCopier: for every type of the scheme, with random content, the copy is that of
// DeepCopyObject. Whatever the caller's object had before is gone.
func TestDeepCopier(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Log("seed", seed)
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs)
	tried := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		made, err := scheme.Scheme.New(gvk)
		require.NoError(t, err)
		obj, ok := made.(object)
		if !ok {
			continue
		}
		fill.Fill(obj)
		into := reflect.New(reflect.TypeOf(obj).Elem())
		fill.Fill(into.Interface())
		c := newDeepCopier(reflect.TypeOf(obj))
		require.True(t, c.into.IsValid(), gvk)
		c.copyInto(reflect.ValueOf(obj), into)
		require.Equal(t, obj.DeepCopyObject(), into.Interface(), gvk)
		tried++
	}
	require.Greater(t, tried, 100)
}

// embedding has the DeepCopyInto of its ConfigMap, which copies no Extra.
type embedding struct {
	corev1.ConfigMap
	Extra []string
}

func (e *embedding) DeepCopyObject() apiruntime.Object {
	return &embedding{*e.ConfigMap.DeepCopy(), append([]string(nil), e.Extra...)}
}

func TestDeepCopierOfEmbedding(t *testing.T) {
	from, into := &embedding{Extra: []string{"x"}}, &embedding{}
	from.Name = "e"
	newDeepCopier(reflect.TypeOf(from)).copyInto(reflect.ValueOf(from), reflect.ValueOf(into))
	require.Equal(t, from, into)
}

// TestDeepCopierAllocates: a copy allocates less than the caller's struct, which is there already.
func TestDeepCopierAllocates(t *testing.T) {
	c, pod, into := newDeepCopier(reflect.TypeFor[*corev1.Pod]()), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, &corev1.Pod{}
	const runs = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		c.copyInto(reflect.ValueOf(pod), reflect.ValueOf(into))
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/runs, uint64(unsafe.Sizeof(*pod)/2))
}

// pointers is a list whose items are pointers, as some generated lists have them.
type pointers struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*corev1.Pod
}

func (p *pointers) DeepCopyObject() apiruntime.Object { return &pointers{Items: p.Items} }

// TestItems: items are structs or pointers, and copies that state their kind or the cache's own.
func TestItems(t *testing.T) {
	held := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	c := &collection{
		shape: shape{
			kind:    kind{corev1.SchemeGroupVersion.WithKind("Pod"), typed},
			configs: map[string]cache.Config{"": {}}, deep: newDeepCopier(reflect.TypeOf(held)),
		},
	}
	for _, shared := range []bool{true, false} {
		structs, list := &corev1.PodList{}, &pointers{}
		require.NoError(t, c.fill(structs, []object{held}, &shared))
		require.NoError(t, c.fill(list, []object{held}, &shared))
		require.Equal(t, shared, held == list.Items[0])
		for _, item := range []*corev1.Pod{&structs.Items[0], list.Items[0]} {
			require.Equal(t, shared, &item.Spec.Containers[0] == &held.Spec.Containers[0])
			require.Equal(t, held.Spec, item.Spec)
			require.Equal(t, !shared, item.Kind == "Pod")
		}
	}
	require.ErrorContains(t, c.fill(&corev1.NodeList{}, []object{held}, nil), "the caller wants a v1.Node")
}

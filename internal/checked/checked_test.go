package checked_test

import (
	"encoding/json"
	"math/rand"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/checked"
)

// In this file the generated code and the JSON decoder are the judges.

type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// kinds are the types of the scheme with generated code, in an order that repeats.
func kinds() (all []reflect.Type) {
	gvks := []schema.GroupVersionKind{}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if reflect.PointerTo(t).Implements(reflect.TypeFor[message]()) {
			gvks = append(gvks, gvk)
		}
	}
	sort.Slice(gvks, func(i, j int) bool { return gvks[i].String() < gvks[j].String() })
	for _, gvk := range gvks {
		all = append(all, scheme.Scheme.AllKnownTypes()[gvk])
	}
	return append(all, reflect.TypeFor[metav1.PartialObjectMetadata](), reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time]())
}

func decodes(t reflect.Type, data []byte) bool {
	return reflect.New(t).Interface().(message).Unmarshal(data) == nil
}

// TestUsualMessagesAreAccepted: the encodings of each type's objects, with every field filled, need
// no decoding. Damaged ones are accepted only if they decode.
func TestUsualMessagesAreAccepted(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Log("seed", seed)
	random := rand.New(rand.NewSource(seed))
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, random, scheme.Codecs)
	for _, kind := range kinds() {
		plan := checked.Of(kind)
		for range 10 {
			obj := reflect.New(kind).Interface()
			fill.Fill(obj)
			data, err := obj.(message).Marshal()
			require.NoError(t, err)
			if decodes(kind, data) {
				require.True(t, plan.Accepts(data), kind)
			}
			for range 200 {
				damaged := damage(random, data)
				if plan.Accepts(damaged) {
					require.True(t, decodes(kind, damaged), "%s %x", kind, damaged)
				}
			}
		}
	}
}

// damage changes a few bytes, or cuts.
func damage(random *rand.Rand, data []byte) []byte {
	damaged := append([]byte{}, data...)
	for range 1 + random.Intn(3) {
		if len(damaged) == 0 {
			break
		}
		at := random.Intn(len(damaged))
		switch random.Intn(5) {
		case 0:
			damaged = damaged[:at]
		case 1:
			damaged = append(damaged[:at], damaged[at+1:]...)
		case 2:
			damaged[at] ^= 1 << random.Intn(8)
		default:
			damaged[at] = byte(random.Intn(256))
		}
	}
	return damaged
}

// FuzzProtobuf: no bytes are accepted that generated code refuses.
func FuzzProtobuf(f *testing.F) {
	all := kinds()
	pod, err := (&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}, CreationTimestamp: metav1.Unix(1, 0)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"cpu": resource.MustParse("1500m")}}}}}}).Marshal()
	require.NoError(f, err)
	deployment, err := (&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}}).Marshal()
	require.NoError(f, err)
	for i, kind := range all {
		switch kind {
		case reflect.TypeFor[corev1.Pod]():
			f.Add(uint16(i), pod)
		case reflect.TypeFor[appsv1.Deployment]():
			f.Add(uint16(i), deployment)
		case reflect.TypeFor[resource.Quantity]():
			for _, text := range []string{"", "1", "100m", "1.5Gi", ".5", "5.", "1e3", "12E", "0x1", "-1", "+1", "999999999999999", "1ki", "007"} {
				f.Add(uint16(i), append([]byte{0x0a, byte(len(text))}, text...))
			}
		}
	}
	f.Fuzz(func(t *testing.T, number uint16, data []byte) {
		kind := all[int(number)%len(all)]
		if checked.Of(kind).Accepts(data) {
			require.True(t, decodes(kind, data), kind)
		}
	})
}

// FuzzJSON: no text is accepted that the decoder refuses, and the identity is that of the tree.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n","namespace":"ns","uid":"u","resourceVersion":"7","labels":{"a\"b":"c\\d\u00e9\n"}}}`,
		`{"metadata":{"name":"a","name":"b"},"x":[1,-2.5,0,true,false,null,{},[],"",{"y":[[]]}]}`, `{"metadata":{},"metadata":{"name":"n"}}`,
		`{"a":1e5}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`, `{"a":"\u12G4"}`, `{"a":"` + "\x01" + `"}`, `{"a":"\x"}`, `{"kind":5}`, `{"kind":null}`,
		`{"\u006betadata":{}}`, `{}`, `{} `, `{}x`, `[]`, ``, `{"a":tru}`, `{"a" 1}`, `{"a":1,}`, `{"a":123456789012345678901234567890}`, strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100),
		"{\"a\":\"\xff\xfe\"}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		identity, ok := checked.JSON(data)
		if !ok {
			return
		}
		var tree unstructured.Unstructured
		require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts(data, &tree.Object))
		require.Equal(t, tree.GetName(), string(identity.Name))
		require.Equal(t, tree.GetNamespace(), string(identity.Namespace))
		require.Equal(t, string(tree.GetUID()), string(identity.UID))
		require.Equal(t, tree.GetResourceVersion(), string(identity.ResourceVersion))
		require.Equal(t, tree.GetKind(), string(identity.Kind))
		require.Equal(t, tree.GetAPIVersion(), string(identity.APIVersion))
	})
}

// TestUsualTreesAreAccepted: objects of each type as servers write them in JSON.
func TestUsualTreesAreAccepted(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Log("seed", seed)
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs)
	accepted, all := 0, 0
	for _, kind := range kinds() {
		obj, ok := reflect.New(kind).Interface().(metav1.Object)
		if !ok {
			continue
		}
		fill.Fill(obj)
		obj.SetName("plain")
		obj.SetNamespace("ns")
		obj.SetUID("u")
		obj.SetResourceVersion("1")
		obj.(runtime.Object).GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind.Name()})
		data, err := json.Marshal(obj)
		require.NoError(t, err)
		if all++; true {
			if _, ok := checked.JSON(data); ok {
				accepted++
			}
		}
	}
	require.Greater(t, accepted, all/2, "random text is unusual in places")
}

// BenchmarkCheck compares a check with decoding.
func BenchmarkCheck(b *testing.B) {
	pod := &corev1.Pod{}
	fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), scheme.Codecs).Fill(pod)
	data, err := pod.Marshal()
	require.NoError(b, err)
	b.SetBytes(int64(len(data)))
	plan := checked.Of(reflect.TypeFor[corev1.Pod]())
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			require.True(b, plan.Accepts(data))
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, (&corev1.Pod{}).Unmarshal(data))
		}
	})
}

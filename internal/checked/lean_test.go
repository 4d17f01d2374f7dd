package checked_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/checked"
	"github.com/tributary-go/tributary/internal/fieldsv1"
	"github.com/tributary-go/tributary/internal/wire"
)

// lean is the result of cutting, which leaves the bytes around data alone.
func lean(t *testing.T, cut func([]byte) []byte, data []byte) []byte {
	t.Helper()
	around := append(append([]byte("before"), data...), "after"...)
	inside := around[len("before") : len("before")+len(data) : len("before")+len(data)]
	rest := bytes.Clone(cut(inside))
	require.Equal(t, "before", string(around[:len("before")]))
	require.Equal(t, "after", string(around[len(around)-len("after"):]))
	require.Equal(t, string(rest), string(cut(bytes.Clone(rest))), "a second cut changes nothing")
	return rest
}

// requireLean: what decodes after the cut is the decoding of before, without the managed fields.
// Only managed fields that are malformed themselves may decode just afterwards. Unusual messages
// are not compared: generated code lets an entry of a map reach into the fields behind it.
func requireLean(t *testing.T, kind reflect.Type, data []byte) (cut bool) {
	t.Helper()
	rest := lean(t, checked.Lean, data)
	whole, small := reflect.New(kind).Interface(), reflect.New(kind).Interface()
	failed, also := whole.(message).Unmarshal(data), small.(message).Unmarshal(rest)
	accepted := checked.Of(kind).Accepts(rest)
	switch {
	case !accepted:
	case failed == nil:
		require.NoError(t, also)
		if len(rest) < len(data) {
			whole.(metav1.Object).SetManagedFields(nil)
		}
		require.True(t, equality.Semantic.DeepEqual(whole, small), "%#v, not %#v", small, whole)
	case also == nil:
		require.True(t, malformedManaged(data), failed)
	}
	if accepted && oneMetadata(rest) {
		require.Empty(t, small.(metav1.Object).GetManagedFields())
	}
	return len(rest) < len(data)
}

func oneMetadata(data []byte) bool {
	n := 0
	_ = wire.EachField(data, 0, func(field int, _ []byte) error {
		if field == 1 {
			n++
		}
		return nil
	})
	return n == 1
}

// malformedManaged reports whether the fault of a message may be in its managed fields.
func malformedManaged(data []byte) (malformed bool) {
	err := wire.EachField(data, 0, func(field int, metadata []byte) error {
		if field != 1 {
			return nil
		}
		return wire.EachField(metadata, 0, func(field int, entry []byte) error {
			malformed = malformed || field == 17 && new(metav1.ManagedFieldsEntry).Unmarshal(entry) != nil
			return nil
		})
	})
	return malformed || err != nil // of a number that is too large
}

// TestManagedFieldsAreCut: out of the objects of each type, and of damaged ones.
func TestManagedFieldsAreCut(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Log("seed", seed)
	random := rand.New(rand.NewSource(seed))
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, random, scheme.Codecs)
	for _, kind := range kinds() {
		obj, ok := reflect.New(kind).Interface().(metav1.Object)
		if !ok {
			continue
		}
		for i := range 10 {
			fill.Fill(obj)
			obj.SetManagedFields(nil)
			for range i % 4 {
				obj.SetManagedFields(append(obj.GetManagedFields(), managed(random)))
			}
			data, err := obj.(message).Marshal()
			require.NoError(t, err)
			require.Equal(t, i%4 > 0, requireLean(t, kind, data))
			if i%4 > 0 { // the fields that follow the last one of metadata
				require.True(t, requireLean(t, kind, interleaved(t, obj)))
			}
			for range 100 {
				requireLean(t, kind, damage(random, data))
			}
		}
	}
}

func managed(random *rand.Rand) metav1.ManagedFieldsEntry {
	now := metav1.Unix(random.Int63n(1<<32), 0)
	return metav1.ManagedFieldsEntry{
		Manager: fmt.Sprint("m", random.Int()), Operation: "Update", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1",
		FieldsV1: fieldsv1.Of(strings.Repeat(`{"f:a":{}}`, random.Intn(40))),
	}
}

// interleaved is a message in which other fields of the metadata stand between the managed ones.
func interleaved(t *testing.T, obj metav1.Object) []byte {
	part := &metav1.ObjectMeta{Name: "between"}
	var metadata []byte
	for _, entry := range obj.GetManagedFields() {
		part.ManagedFields = []metav1.ManagedFieldsEntry{entry}
		data, err := part.Marshal()
		require.NoError(t, err)
		metadata = append(metadata, data...)
	}
	obj.SetManagedFields(nil)
	rest, err := obj.(message).Marshal()
	require.NoError(t, err)
	_, _, start, end := wire.Field(rest)
	metadata = append(metadata, rest[start:end]...)
	return append(field(1, metadata), rest[end:]...)
}

func field(number byte, value []byte) []byte {
	return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(value))), value...)
}

// FuzzLean cuts the managed fields out of any bytes.
func FuzzLean(f *testing.F) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{NodeName: "n"}}
	for i := range 4 {
		data, err := pod.Marshal()
		require.NoError(f, err)
		f.Add(data)
		f.Add(append(data, data...))
		pod.ManagedFields = append(pod.ManagedFields, managed(rand.New(rand.NewSource(int64(i)))))
	}
	f.Fuzz(func(t *testing.T, data []byte) { requireLean(t, reflect.TypeFor[corev1.Pod](), data) })
}

// requireLeanJSON is requireLean of a text. What is cut need not be JSON.
func requireLeanJSON(t *testing.T, data []byte) (cut bool) {
	t.Helper()
	rest := lean(t, checked.LeanJSON, data)
	var whole, small unstructured.Unstructured
	failed, also := kjson.UnmarshalCaseSensitivePreserveInts(data, &whole.Object), kjson.UnmarshalCaseSensitivePreserveInts(rest, &small.Object)
	if failed == nil {
		require.NoError(t, also)
		drop := func(tree map[string]any) {
			if metadata, ok := tree["metadata"].(map[string]any); ok {
				delete(metadata, "managedFields")
			}
		}
		if _, accepted := checked.JSON(rest); accepted {
			drop(whole.Object)
			require.Equal(t, whole.Object, small.Object)
		}
		drop(small.Object)
		drop(whole.Object)
		require.Equal(t, whole.Object, small.Object)
		var pod, bare corev1.Pod
		if kjson.UnmarshalCaseSensitivePreserveInts(data, &pod) == nil {
			require.NoError(t, kjson.UnmarshalCaseSensitivePreserveInts(rest, &bare))
			if _, accepted := checked.JSON(rest); accepted {
				require.Empty(t, bare.ManagedFields)
			}
			pod.ManagedFields, bare.ManagedFields = nil, nil
			require.True(t, equality.Semantic.DeepEqual(pod, bare))
		}
	}
	return len(rest) < len(data)
}

var leanTexts = map[string]bool{
	`{"metadata":{"name":"a","managedFields":[{"manager":"m"}]}}`:                          true,
	`{"metadata":{"managedFields":[{"manager":"}]\""}],"name":"a"},"spec":{}}`:             true,
	`{"spec":{"managedFields":[1]},"metadata":{"managedFields":[]}}`:                       true,
	` { "metadata" : { "managedFields" : [ ] , "name" : "a" } } `:                          true,
	`{"metadata":{"name":"a" , "managedFields" : [ ] }}`:                                   true,
	`{"metadata":{"managedFields":[],"managedFields":[{}],"name":"a","managedFields":[]}}`: true,
	`{"metadata":{"name":"a","managedFields":[],"uid":"u","managedFields":null,"x":[1]}}`:  true,
	`{"metadata":{"managedFields":"text","name":"a"}}`:                                     true,
	`{"metadata":{"managedFields":[1]},"metadata":{"managedFields":[2],"name":"a"}}`:       true,
	`{"metadata":{"name":"a"},"metadata":{"managedFields":[2]}}`:                           false,
	`{"metadata":{"name":"a","managed\u0046ields":[{}]}}`:                                  false,
	`{"metadata":{"name":"a","managedFields":[{}],"managed\u0046ields":[{}]}}`:             false,
	`{"metadata":{"annotations":{"managedFields":"[]"},"labels":{"a\"b":"c"},"name":"a"}}`: false,
	`{"metadata":{"name":"a","managedFields":[],}}`:                                        false,
	`{"metadata":null,"managedFields":[]}`:                                                 false,
	`{"metadata":[{"managedFields":[]}]}`:                                                  false,
	`{"metadata":{"managedFields":[{]}`:                                                    false,
	`{"metadata":{"managedFields":`:                                                        false,
}

func TestManagedFieldsAreCutOutOfJSON(t *testing.T) {
	for text, want := range leanTexts {
		require.Equal(t, want, requireLeanJSON(t, []byte(text)), text)
	}
	random := rand.New(rand.NewSource(5))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"a": "\""}}, Spec: corev1.PodSpec{NodeName: "n"}}
	for range 4 {
		pod.ManagedFields = append(pod.ManagedFields, managed(random))
		for i := range pod.ManagedFields {
			pod.ManagedFields[i].FieldsV1 = fieldsv1.Of(`{"f:a":{".":{}}}`)
		}
		data, err := json.Marshal(pod)
		require.NoError(t, err)
		require.True(t, requireLeanJSON(t, data))
		for range 3000 {
			requireLeanJSON(t, damage(random, data))
		}
	}
}

func FuzzLeanJSON(f *testing.F) {
	for text := range leanTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) { requireLeanJSON(t, data) })
}

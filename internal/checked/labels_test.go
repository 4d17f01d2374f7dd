package checked

import (
	"fmt"
	"maps"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// requireSameLabels: what is read is what decoding has.
func requireSameLabels(t *testing.T, data []byte) (protobuf, json bool) {
	t.Helper()
	var pod corev1.Pod
	if pod.Unmarshal(data) == nil {
		var labels map[string]string
		if labels, protobuf = Labels(data); protobuf {
			require.True(t, maps.Equal(pod.Labels, labels), "%q, not %q", labels, pod.Labels)
		}
	}
	var head metav1.PartialObjectMetadata
	if kjson.UnmarshalCaseSensitivePreserveInts(data, &head) == nil {
		var labels map[string]string
		if labels, json = JSONLabels(data); json {
			require.True(t, maps.Equal(head.Labels, labels), "%q, not %q", labels, head.Labels)
		}
	}
	var tree unstructured.Unstructured
	if kjson.UnmarshalCaseSensitivePreserveInts(data, &tree.Object) == nil {
		if labels, ok := JSONLabels(data); ok {
			require.True(t, maps.Equal(tree.GetLabels(), labels), "%q, not %q", labels, tree.GetLabels())
		}
	}
	return protobuf, json
}

// TestLabelsAreRead: of the usual forms, and of messages whose metadata comes in parts.
func TestLabelsAreRead(t *testing.T) {
	random := rand.New(rand.NewSource(7))
	for range 200 {
		var message []byte
		for range 1 + random.Intn(2) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"x": "y"}}}
			pod.Spec.NodeSelector = map[string]string{"labels": "no"}
			pod.Labels = map[string]string{}
			for range random.Intn(4) {
				pod.Labels[fmt.Sprint("key-", random.Intn(5))] = fmt.Sprint(random.Intn(9))
			}
			part, err := pod.Marshal()
			require.NoError(t, err)
			message = append(message, part...)
		}
		read, _ := requireSameLabels(t, message)
		require.True(t, read)
	}
	for text, usual := range map[string]bool{
		`{"metadata":{"name":"a","labels":{"app":"web","tier":"1"}},"spec":{"labels":{"app":"no"}}}`: true,
		`{"spec":{}, "metadata": { "labels" : {} } }`:                                                true,
		`{"metadata":{"name":"a"}}`:                                                                  true,
		`{"metadata":{"labels":{"a":"1","a":"2"}}}`:                                                  true,
		`{"metadata":{"labels":{"a":"1"}},"metadata":{"labels":{"b":"2"}}}`:                          false,
		`{"metadata":{"labels":{"a":"1"},"labels":{"b":"2"}}}`:                                       false,
		`{"metadata":{"labels":{"a":"\u0041"}}}`:                                                     false,
		`{"metadata":{"labels":{"\u0041":"a"}}}`:                                                     false,
		`{"metadata":{"labels":null}}`:                                                               false,
		`{"metadata":{"labels":{"a":null}}}`:                                                         false,
		`{"metadata":{"labels":{"a":1}}}`:                                                            false,
	} {
		_, read := requireSameLabels(t, []byte(text))
		_, ok := JSONLabels([]byte(text))
		require.Equal(t, usual, ok, text)
		require.False(t, read && !ok)
	}
}

func FuzzLabels(f *testing.F) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "web", "": "x"}}}
	message, _ := pod.Marshal()
	f.Add(message)
	f.Add(append(message, message...))
	f.Add([]byte(`{"metadata":{"name":"a","labels":{"app":"web"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) { requireSameLabels(t, data) })
}

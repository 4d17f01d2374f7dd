package checked

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

func textField[T any](t testing.TB, path string) *Field {
	t.Helper()
	f, err := FieldOf(reflect.TypeFor[T](), path)
	require.NoError(t, err)
	return f
}

// podFields are texts at each depth, behind a pointer, and in a struct that JSON has inline.
var podFields = []string{
	"metadata.name", "metadata.uid", "spec.nodeName", "spec.restartPolicy", "spec.priorityClassName",
	"spec.runtimeClassName", "status.phase", "status.podIP", "spec.securityContext.seccompProfile.type",
}

// requireSameField: what is read off the bytes is what decoding has.
func requireSameField(t *testing.T, data []byte) (protobuf, inJSON int) {
	t.Helper()
	for _, path := range podFields {
		f, tree := textField[*corev1.Pod](t, path), textField[*unstructured.Unstructured](t, path)
		var pod corev1.Pod
		if pod.Unmarshal(data) == nil {
			if text, ok := f.Protobuf(data); ok {
				protobuf++
				require.Equal(t, f.Of(&pod), text, path)
			}
		}
		pod = corev1.Pod{}
		if kjson.UnmarshalCaseSensitivePreserveInts(data, &pod) == nil {
			if text, ok := f.JSON(data); ok {
				inJSON++
				require.Equal(t, f.Of(&pod), text, path)
			}
		}
		var document unstructured.Unstructured
		if kjson.UnmarshalCaseSensitivePreserveInts(data, &document.Object) == nil {
			if text, ok := tree.JSON(data); ok {
				require.Equal(t, tree.Of(&document), text, path)
			}
		}
	}
	return protobuf, inJSON
}

func somePodOfFields(random *rand.Rand) *corev1.Pod {
	text := func() string { return []string{"", "a", "b", "c"}[random.Intn(4)] }
	pod := &corev1.Pod{}
	pod.Name, pod.Spec.NodeName, pod.Status.PodIP = text(), text(), text()
	pod.Labels = map[string]string{"nodeName": "no", "spec": "no"}
	pod.Spec.RestartPolicy, pod.Status.Phase = corev1.RestartPolicy(text()), corev1.PodPhase(text())
	if random.Intn(2) == 0 {
		class := text()
		pod.Spec.RuntimeClassName = &class
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
		if random.Intn(2) == 0 {
			pod.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileType(text())}
		}
	}
	return pod
}

// TestFieldsAreRead: of the usual forms, and of messages that come in parts.
func TestFieldsAreRead(t *testing.T) {
	random := rand.New(rand.NewSource(11))
	for range 300 {
		var message []byte
		for range 1 + random.Intn(2) {
			part, err := somePodOfFields(random).Marshal()
			require.NoError(t, err)
			message = append(message, part...)
		}
		protobuf, _ := requireSameField(t, message)
		require.Equal(t, len(podFields), protobuf)
		document, err := json.Marshal(somePodOfFields(random))
		require.NoError(t, err)
		_, inJSON := requireSameField(t, document)
		require.Equal(t, len(podFields), inJSON)
	}
	for text, usual := range map[string]bool{
		`{"spec":{"nodeName":"a"}}`:                                       true,
		` { "status" : {"spec":{"nodeName":"no"}}, "spec": {"a":[{}]} } `: true,
		`{"metadata":{}}`:                                                 true,
		`{"spec":{"nodeName":"a"},"spec":{"nodeName":"b"}}`:               false,
		`{"spec":{"nodeName":"a","nodeName":"b"}}`:                        false,
		`{"spec":{"nodeName":"\u0041"}}`:                                  false,
		`{"spec":{"\u006eodeName":"a"}}`:                                  false,
		`{"spec":null}`:                                                   false,
		`{"spec":{"nodeName":null}}`:                                      false,
		`{"spec":{"nodeName":1}}`:                                         false,
		`{"spec":{"nodeName":{}}}`:                                        false,
	} {
		requireSameField(t, []byte(text))
		_, ok := textField[*unstructured.Unstructured](t, "spec.nodeName").JSON([]byte(text))
		require.Equal(t, usual, ok, text)
	}
	deep := textField[*unstructured.Unstructured](t, "a.b.c.d")
	_, ok := deep.JSON([]byte(`{"a":{"b":{"c":{"\u0064":"x"}}}}`))
	require.False(t, ok, "a key may be the one that is asked for")
}

// TestFieldsThatAreNone: an error names the path, the type, and what is missing.
func TestFieldsThatAreNone(t *testing.T) {
	for path, want := range map[string]string{
		"spec.nodename":        `*v1.Pod has no field "spec.nodename": there is no "nodename" in v1.PodSpec`,
		"":                     `*v1.Pod has no field "": there is no "" in v1.Pod`,
		"kind":                 `*v1.Pod has no field "kind": there is no "kind" in v1.Pod`,
		"spec":                 `the field "spec" of *v1.Pod is no text, but a v1.PodSpec`,
		"spec.containers":      `the field "spec.containers" of *v1.Pod is no text, but a []v1.Container`,
		"spec.containers.name": `*v1.Pod has no field "spec.containers.name": "spec.containers" is no struct`,
		"spec.nodeName.x":      `*v1.Pod has no field "spec.nodeName.x": "spec.nodeName" is no struct`,
		"metadata.labels.app":  `*v1.Pod has no field "metadata.labels.app": "metadata.labels" is no struct`,
		"spec.priority":        `the field "spec.priority" of *v1.Pod is no text, but a int32`,
		"status.startTime":     `the field "status.startTime" of *v1.Pod is no text, but a v1.Time`,
		"status.startTime.x":   `*v1.Pod has no field "status.startTime.x": "status.startTime" is no struct`,
	} {
		_, err := FieldOf(reflect.TypeFor[*corev1.Pod](), path)
		require.EqualError(t, err, want)
	}
	_, err := FieldOf(reflect.TypeFor[metav1.Object](), "spec.nodeName")
	require.ErrorContains(t, err, "is no struct")
	_, err = FieldOf(reflect.TypeFor[*appsv1.Deployment](), "spec.strategy.type")
	require.NoError(t, err)
	_, err = FieldOf(reflect.TypeFor[*metav1.PartialObjectMetadata](), "metadata.name")
	require.NoError(t, err)
}

// FuzzField: of any bytes that decode, what is read is what decoding has.
func FuzzField(f *testing.F) {
	random := rand.New(rand.NewSource(3))
	for range 5 {
		message, err := somePodOfFields(random).Marshal()
		require.NoError(f, err)
		f.Add(message)
		document, err := json.Marshal(somePodOfFields(random))
		require.NoError(f, err)
		f.Add(document)
	}
	f.Add([]byte(fmt.Sprintf(`{"spec":{"%s":"a"}}`, "nodeName")))
	f.Fuzz(func(t *testing.T, data []byte) { requireSameField(t, data) })
}

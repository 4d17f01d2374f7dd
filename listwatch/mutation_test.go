package listwatch_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/listwatch"
)

func TestAWriteIntoAnObjectIsFoundAndNamed(t *testing.T) {
	for path, write := range map[string]func(*corev1.Pod){
		"metadata.labels[app]":                          func(p *corev1.Pod) { p.Labels["app"] = "other" },
		"metadata.labels[new]":                          func(p *corev1.Pod) { p.Labels["new"] = "" },
		"metadata.annotations":                          func(p *corev1.Pod) { p.Annotations = nil },
		"spec.containers[1].image":                      func(p *corev1.Pod) { p.Spec.Containers[1].Image = "other" },
		"spec.containers[0].args":                       func(p *corev1.Pod) { p.Spec.Containers[0].Args = p.Spec.Containers[0].Args[:1] },
		"spec.nodeName":                                 func(p *corev1.Pod) { p.Spec.NodeName = "" },
		"status.containerStatuses":                      func(p *corev1.Pod) { p.Status.ContainerStatuses = nil },
		"kind":                                          func(p *corev1.Pod) { p.Kind = "Pod" },
		"metadata.managedFields[0].fieldsV1":            func(p *corev1.Pod) { p.ManagedFields[0].FieldsV1 = nil },
		"spec.containers[0].livenessProbe.httpGet.path": func(p *corev1.Pod) { p.Spec.Containers[0].LivenessProbe.HTTPGet.Path = "/" },
	} {
		t.Run(path, func(t *testing.T) {
			cs := clientset(t, serve(t, answer(200, protobufType, encode(t, protobufType, v1Version, podList(5)))))
			var found []listwatch.Mutation
			lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods", listwatch.WithoutSharing(),
				listwatch.WithMutationDetector(func(m listwatch.Mutation) { found = append(found, m) }))
			n := 0
			for p, err := range lw.List(t.Context(), metav1.ListOptions{}).Items {
				require.NoError(t, err)
				if n == 2 {
					write(p)
				}
				n++
			}
			require.Equal(t, []listwatch.Mutation{{Object: "shop/" + pod(2).Name, ResourceVersion: pod(2).ResourceVersion, Path: path}}, found)
			readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Len(t, found, 1, "told once")
		})
	}
}

func TestAWriteIntoASharedPartIsFoundInEachObjectThatHasIt(t *testing.T) {
	for _, media := range encodings {
		cs := clientset(t, serve(t, answerBoth(media, encode(t, media, v1Version, podList(5)), frames(t, media, v1Version, podEvents(5)...))))
		found := map[string]string{}
		// A write here shows in all pods of the kind.
		lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "written",
			listwatch.WithMutationDetector(func(m listwatch.Mutation) { found[m.Object] = m.Path }))
		listed, _, _ := readList(lw.List(t.Context(), metav1.ListOptions{}))
		require.Empty(t, found, "nobody has written")
		events, _ := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
		require.Empty(t, found, "nobody has written")
		events[0].Object.Spec.Tolerations[0].Key = "other"
		require.Equal(t, "other", listed[4].Spec.Tolerations[0].Key)
		readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
		require.NotEmpty(t, found)
		for _, path := range found {
			require.Equal(t, "spec.tolerations[0].key", path)
		}
	}
}

func TestAWriteIntoATreeIsFoundAndNamed(t *testing.T) {
	body := `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{},"items":[{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"list":[{"a":1},{"a":2}]}}]}`
	client := restClient(t, serve(t, answer(200, jsonType, []byte(body))), schema.GroupVersion{Group: "example.com", Version: "v1"})
	var found []listwatch.Mutation
	lw := listwatch.FromClient[unstructured.Unstructured](client, "widgets", listwatch.WithMutationDetector(func(m listwatch.Mutation) { found = append(found, m) }))
	for u, err := range lw.List(t.Context(), metav1.ListOptions{}).Items {
		require.NoError(t, err)
		u.Object["spec"].(map[string]any)["list"].([]any)[1].(map[string]any)["a"] = "two"
	}
	require.Equal(t, []listwatch.Mutation{{Object: "a", Path: "spec.list[1].a"}}, found)
}

// Neither a held object nor its projection counts as a mutation.
func TestHoldingIsNoMutation(t *testing.T) {
	cs := clientset(t, serve(t, answer(200, protobufType, encode(t, protobufType, v1Version, podList(3)))))
	source := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods",
		listwatch.WithMutationDetector(func(m listwatch.Mutation) { t.Error(m) }))
	calls := 0
	var listed []*onNode
	projected := listwatch.Project(source, toNode(&calls)).Holding(func(key string) (*onNode, bool) {
		for _, o := range listed {
			if o.Namespace+"/"+o.Name == key {
				return o, true
			}
		}
		return nil, false
	})
	first, _, errs := readList(projected.List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	listed = first
	again, _, errs := readList(projected.List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	require.Equal(t, 3, calls)
	require.Equal(t, listed, again)
}

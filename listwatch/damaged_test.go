package listwatch_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
)

// listOutcome returns the names of a list's objects, and the errors between them.
func listOutcome(list listwatch.List[*corev1.Pod]) (steps []string) {
	for obj, err := range list.Items {
		if err != nil {
			steps = append(steps, "! "+err.Error())
			continue
		}
		steps = append(steps, obj.Name)
	}
	return steps
}

func watchOutcome(t *testing.T, body []byte) (steps []string) {
	t.Helper()
	server := &cutter{body: body}
	for event, err := range listwatch.FromClient[corev1.Pod](server.client(t), "pods").Watch(t.Context(), metav1.ListOptions{}) {
		if err != nil {
			steps = append(steps, "! "+err.Error())
			continue
		}
		steps = append(steps, string(event.Type)+" "+event.Object.Name)
	}
	return steps
}

// damage damages pod b of a protobuf list: the length of its node's name, and so all that follows.
func damage(t *testing.T, body []byte) []byte {
	t.Helper()
	at := bytes.LastIndex(body[:bytes.LastIndex(body, []byte("node-1"))], []byte("node-1"))
	require.Positive(t, at)
	body = bytes.Clone(body)
	body[at-1] = 0xff
	return body
}

func TestDamagedItemCostsOnlyItself(t *testing.T) {
	t.Run("JSON", func(t *testing.T) {
		body := strings.Replace(string(encode(t, jsonType, v1Version, small())), `"nodeName":"node-1"`, `"nodeName":12`, 2)
		body = strings.Replace(body, `"nodeName":12`, `"nodeName":"node-1"`, 1)
		server := &cutter{body: []byte(body)}
		list := listwatch.FromClient[corev1.Pod](server.client(t), "pods").List(t.Context(), metav1.ListOptions{})
		require.Equal(t, []string{"a",
			"! list: object shop/b cannot be used: field spec.nodeName is a JSON number, which does not fit string", "c"}, listOutcome(list))
		require.Equal(t, "42", list.Meta().ResourceVersion)
	})
	t.Run("protobuf", func(t *testing.T) {
		server := &cutter{body: damage(t, encode(t, protobufType, v1Version, small()))}
		list := listwatch.FromClient[corev1.Pod](server.client(t), "pods").List(t.Context(), metav1.ListOptions{})
		require.Equal(t, []string{"a", "! list: object shop/b cannot be used: malformed protobuf", "c"}, listOutcome(list))
		require.Equal(t, "42", list.Meta().ResourceVersion)
	})
}

func TestDamagedEventCostsOnlyItself(t *testing.T) {
	pods := small().Items
	event := func(media string, i int) []byte {
		return frames(t, media, v1Version, watch.Event{Type: watch.Modified, Object: &pods[i]})
	}
	t.Run("JSON", func(t *testing.T) {
		bad := bytes.Replace(event(jsonType, 1), []byte(`"node-1"`), []byte(`true`), 1)
		require.Equal(t, []string{"MODIFIED a",
			"! watch: MODIFIED event of object shop/b cannot be used: field spec.nodeName is a JSON bool, which does not fit string",
			"MODIFIED c"}, watchOutcome(t, bytes.Join([][]byte{event(jsonType, 0), bad, event(jsonType, 2)}, nil)))
	})
	t.Run("protobuf object", func(t *testing.T) {
		bad := event(protobufType, 1)
		bad[bytes.Index(bad, []byte("node-1"))-1] = 0xff
		require.Equal(t, []string{"MODIFIED a", "! watch: MODIFIED event of object shop/b cannot be used: malformed protobuf",
			"MODIFIED c"}, watchOutcome(t, bytes.Join([][]byte{event(protobufType, 0), bad, event(protobufType, 2)}, nil)))
	})
	t.Run("protobuf frame", func(t *testing.T) {
		bad := append(binary.BigEndian.AppendUint32(nil, 3), 0xff, 0xff, 0xff)
		require.Equal(t, []string{"MODIFIED a", "! watch: unknown event of an object cannot be used: malformed protobuf",
			"MODIFIED c"}, watchOutcome(t, bytes.Join([][]byte{event(protobufType, 0), bad, event(protobufType, 2)}, nil)))
	})
}

func TestUnknownEventType(t *testing.T) {
	for _, media := range encodings {
		body := frames(t, media, v1Version, watch.Event{Type: watch.Added, Object: &small().Items[0]},
			watch.Event{Type: "MOVED", Object: &small().Items[1]}, watch.Event{Type: watch.Added, Object: &small().Items[2]})
		require.Equal(t, []string{"ADDED a",
			"! watch: unknown event of object shop/b cannot be used: only ADDED, MODIFIED, DELETED, BOOKMARK and ERROR are defined",
			"ADDED c"}, watchOutcome(t, body), media)
	}
}

func TestObjectOfAnotherKind(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			body := frames(t, media, v1Version, watch.Event{Type: watch.Added, Object: configMap(1)},
				watch.Event{Type: watch.Added, Object: &small().Items[2]})
			require.Equal(t, []string{"! watch: ADDED event of object shop/settings-1 cannot be used: the object is a ConfigMap, not a Pod",
				"ADDED c"}, watchOutcome(t, body))

			list := encode(t, media, v1Version, &corev1.ConfigMapList{Items: []corev1.ConfigMap{*configMap(1)}})
			server := &cutter{body: list}
			require.Equal(t, []string{"! list pods: the answer is a ConfigMapList, not a PodList: compare the resource with the Go type (GET http://cut.example/api/v1/pods)"},
				listOutcome(listwatch.FromClient[corev1.Pod](server.client(t), "pods").List(t.Context(), metav1.ListOptions{})))
		})
	}
	t.Run("an item that names its kind", func(t *testing.T) {
		server := &cutter{body: []byte(`{"items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}},
			{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"}},{"metadata":{"name":"c"}}]}`)}
		require.Equal(t, []string{"a", "! list: object b cannot be used: the object is a ConfigMap, not a Pod", "c"},
			listOutcome(listwatch.FromClient[corev1.Pod](server.client(t), "pods").List(t.Context(), metav1.ListOptions{})))
	})
}

func TestEventOfAnObjectWithoutAKind(t *testing.T) {
	require.Equal(t, []string{"! watch: ADDED event of object a cannot be used: the object has no kind"},
		watchOutcome(t, []byte(`{"type":"ADDED","object":{"metadata":{"name":"a"}}}`)))
	require.Equal(t, []string{"! watch: ADDED event of an object cannot be used: the object is not a JSON object"},
		watchOutcome(t, []byte(`{"type":"ADDED","object":null}`)))
	require.Equal(t, []string{"! watch: ADDED event of an object cannot be used: the object is not a JSON object"},
		watchOutcome(t, []byte(`{"type":"ADDED"}`)))
	raw, err := (&runtime.Unknown{Raw: mustMarshal(t, &small().Items[1])}).Marshal()
	require.NoError(t, err)
	event := mustMarshal(t, &metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: append([]byte("k8s\x00"), raw...)}})
	require.Equal(t, []string{"! watch: ADDED event of object shop/b cannot be used: the object has no kind"},
		watchOutcome(t, append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)))
}

func mustMarshal(t *testing.T, message interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	data, err := message.Marshal()
	require.NoError(t, err)
	return data
}

func TestUnstructuredItemWithoutAKind(t *testing.T) {
	server := &cutter{body: []byte(`{"items":[{"metadata":{"name":"a"}},{"kind":"B","metadata":{"name":"b"}},
		{"apiVersion":"v1","kind":"B","metadata":{"name":"c"}},null]}`)}
	objects, _, errs := readList(listwatch.FromClient[unstructured.Unstructured](server.client(t), "pods").List(t.Context(), metav1.ListOptions{}))
	require.Len(t, objects, 1)
	require.Equal(t, "c", objects[0].GetName())
	require.Len(t, errs, 3)
	for i, want := range []string{"object a cannot be used: the object has no kind or no apiVersion",
		"object b cannot be used: the object has no kind or no apiVersion", "an object cannot be used: the object is not a JSON object"} {
		require.EqualError(t, errs[i], "list: "+want)
	}
}

// Fields of a JSON list come in any order, and unknown fields are skipped.
func TestListInAnyOrder(t *testing.T) {
	for body, want := range map[string][]string{
		` {"metadata":{"resourceVersion":"42"},"new":{"a":["}"]},"items":[{"metadata":{"name":"a"}}],"kind":"PodList"} `: {"a"},
		`{"items":null,"metadata":{"resourceVersion":"42"}}`:                                                             nil,
		`{"kind":"PodList","metadata":{"resourceVersion":"42"}}`:                                                         nil,
		`{"items":[ ],"metadata":{"resourceVersion":"42"},"metadata":null}`:                                              nil,
	} {
		server := &cutter{body: []byte(body)}
		list := listwatch.FromClient[corev1.Pod](server.client(t), "pods").List(t.Context(), metav1.ListOptions{})
		require.Equal(t, want, listOutcome(list), body)
		require.Equal(t, "42", list.Meta().ResourceVersion, body)
	}
}

func TestMalformedListIsRefused(t *testing.T) {
	for _, body := range []string{
		`{}`, `{"items":[]`, `{"items":{}}`, `{"items":[]]`, `{"items":[],}`, `{"items":[,]}`, `{"items":[]}{}`, `{"items":[]} x`,
		`{items:[]}`, `{null:[],"items":[]}`, `{"items":[],"items":[]}`, `{"items":nul}`, `{"items":[],"x":y}`, `{"items":[] "x":1}`,
		`{"items":[],"metadata":5}`, `{"kind":"Status","items":[]}`, `{"kind":["PodList"],"items":[]}`, `{"metadata":{}}`,
		"k8s\x00", "k8s\x00\x0b", "k8s\x00\x10\x01", "k8s\x00\x12\x02\x12\x05", "k8s\x00\x12\x00\x12\x00",
		"k8s\x00\x12\x01\x10", "k8s\x00\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "k8s\x00\x12\x00\x02",
		"k8s\x00\x12\x04\x0a\x00\x12\x01a", "k8s\x00\x12\x03\x18\x80\x80\x00",
	} {
		server := &cutter{body: []byte(body)}
		steps := listOutcome(listwatch.FromClient[corev1.Pod](server.client(t), "pods").List(t.Context(), metav1.ListOptions{}))
		require.Len(t, steps, 1, "%q", body)
		require.Contains(t, steps[0], "! list pods: ", "%q", body)
	}
}

func TestMalformedWatchEnds(t *testing.T) {
	for _, body := range []string{
		`[]`, `5`, `null`, `{"type":ADDED,"object":{}}`, `{"type":"ADDED","object":{}},`, `{"type":"ADDED" "object":{}}`,
		`{"type":"ADDED","x":y}`, `{"type":"ADDED"]`, `{type:"ADDED"}`, `{"type"}`, `{,}`, `{null:1}`,
	} {
		steps := watchOutcome(t, []byte(body))
		require.NotEmpty(t, steps, "%q", body)
		require.Contains(t, steps[len(steps)-1], "! watch pods: ", "%q", body)
	}
}

func TestProtobufThatWasNotAskedFor(t *testing.T) {
	server := &cutter{body: encode(t, protobufType, v1Version, small())}
	lw := listwatch.FromClient[unstructured.Unstructured](server.client(t), "pods")
	_, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], "protobuf, which was not asked for")
	server.body = frames(t, protobufType, v1Version, podEvents(1)...)
	_, errs = readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], "protobuf, which was not asked for")
}

package apiserver_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/features"
	featuretesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
)

// TestCBORSaysWhatJSONSays: the API machinery's decoder reads the same in both, in every view.
func TestCBORSaysWhatJSONSays(t *testing.T) {
	r := newRig(t)
	for i := range 3 {
		r.create(t, realistic(i))
	}
	_, err := r.configMaps.Create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"},
		Data:       map[string]string{"a": "1", "b": "é\n"}, BinaryData: map[string][]byte{"c": {0, 255}},
	})
	require.NoError(t, err)
	widgets := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	custom := apiserver.Serve(r.Server, apiserver.Resource[*unstructured.Unstructured]{Kind: watchcache.Kind[*unstructured.Unstructured]{
		Group: widgets.Group, Version: widgets.Version, Plural: "widgets", Kind: widgets.Kind,
	}})
	widget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"size": int64(3), "share": 0.5, "parts": []any{"x", map[string]any{"deep": true}}, "none": nil,
	}}}
	widget.SetGroupVersionKind(widgets)
	widget.SetNamespace("ns")
	widget.SetName("w")
	_, err = custom.Create(widget)
	require.NoError(t, err)

	const meta = ";g=meta.k8s.io;v=v1"
	for _, path := range []string{
		"/api/v1/pods", "/api/v1/namespaces/ns/pods/web-0", "/api/v1/configmaps", "/apis/example.com/v1/widgets",
		"/apis/example.com/v1/namespaces/ns/widgets/w", "/api/v1/pods?resourceVersion=nonsense", "/api/v1/namespaces/ns/pods/none",
	} {
		for _, as := range []string{"", ";as=PartialObjectMetadataList" + meta, ";as=Table" + meta} {
			inJSON, inCBOR := r.get(t, path, "Accept", wireJSON+as), r.get(t, path, "Accept", wireCBOR+as)
			require.Equal(t, inJSON.code, inCBOR.code, path+as)
			require.Equal(t, wireCBOR, inCBOR.header.Get("Content-Type"))
			var want, got any
			require.NoError(t, json.Unmarshal(inJSON.body, &want))
			require.NoError(t, direct.Unmarshal(inCBOR.body, &got))
			text, err := json.Marshal(got)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &got))
			require.Equal(t, want, got, path+as)
		}
	}
	typed := cbor.NewSerializer(scheme.Scheme, scheme.Scheme)
	list, _, err := typed.Decode(r.get(t, "/api/v1/pods", "Accept", wireCBOR).body, nil, nil)
	require.NoError(t, err)
	require.Len(t, list.(*corev1.PodList).Items, 3)
}

// TestCBORWatchFrames: a watch is a sequence of data items, and its errors are among them.
func TestCBORWatchFrames(t *testing.T) {
	r := newRig(t)
	a := r.create(t, pod("a"))
	w := r.watch(t, "resourceVersion=1&timeoutSeconds=20", wireCBOR)
	event, item := w.cbor()
	require.Equal(t, "ADDED", event)
	got, _, err := cbor.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(item, nil, nil)
	require.NoError(t, err)
	require.Equal(t, a.UID, got.(*corev1.Pod).UID)
	r.pods.Compact()
	event, item = r.watch(t, "resourceVersion=1", wireCBOR).cbor()
	require.Equal(t, "ERROR", event)
	var status metav1.Status
	require.NoError(t, direct.Unmarshal(item, &status))
	require.EqualValues(t, http.StatusGone, status.Code)
}

// cbor reads the next item of a sequence with the API machinery's framer.
func (w *rawWatch) cbor() (event string, object []byte) {
	w.t.Helper()
	frames := cbor.NewFramer().NewFrameReader(noClose{w.body})
	buffer := make([]byte, 2<<20)
	n, err := frames.Read(buffer)
	require.NoError(w.t, err)
	var e metav1.WatchEvent
	_, _, err = cbor.NewSerializer(scheme.Scheme, scheme.Scheme, cbor.Transcode(false)).Decode(buffer[:n],
		&schema.GroupVersionKind{Version: "v1", Kind: "WatchEvent"}, &e)
	require.NoError(w.t, err)
	return e.Type, e.Object.Raw
}

type noClose struct{ *bufio.Reader }

func (noClose) Close() error { return nil }

// TestDynamicClientOverCBOR writes and reads with client-go's own gates.
func TestDynamicClientOverCBOR(t *testing.T) {
	featuretesting.SetFeatureDuringTest(t, features.ClientsAllowCBOR, true)
	featuretesting.SetFeatureDuringTest(t, features.ClientsPreferCBOR, true)
	r := newRig(t)
	var types []string
	config := rest.CopyConfig(&rest.Config{Host: r.url, QPS: -1})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(request)
			if err == nil {
				types = append(types, request.Method+" "+request.Header.Get("Content-Type")+" "+answer.Header.Get("Content-Type"))
			}
			return answer, err
		})
	})
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	maps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("ns")
	m := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "m"}, "data": map[string]any{"a": "1"},
	}}
	created, err := maps.Create(t.Context(), m, metav1.CreateOptions{})
	require.NoError(t, err)
	listed, err := maps.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, created.GetUID(), listed.Items[0].GetUID())
	watcher, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: listed.GetResourceVersion()})
	require.NoError(t, err)
	defer watcher.Stop()
	created.Object["data"] = map[string]any{"a": "2"}
	_, err = maps.Update(t.Context(), created, metav1.UpdateOptions{})
	require.NoError(t, err)
	event := <-watcher.ResultChan()
	require.Equal(t, watch.Modified, event.Type)
	require.Equal(t, map[string]any{"a": "2"}, event.Object.(*unstructured.Unstructured).Object["data"])
	_, err = maps.Get(t.Context(), "none", metav1.GetOptions{})
	require.ErrorContains(t, err, `configmaps "none" not found`)
	require.Equal(t, []string{
		"POST application/cbor application/cbor", "GET  application/cbor", "GET  application/cbor-seq",
		"PUT application/cbor application/cbor", "GET  application/cbor",
	}, types)
	bad := r.do(t, http.MethodPost, "/api/v1/namespaces/ns/configmaps", "\xa1\x61a", "Content-Type", wireCBOR)
	require.Equal(t, http.StatusBadRequest, bad.code, string(bad.body))
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

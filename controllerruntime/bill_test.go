package controllerruntime_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/metrics"
)

// samplesOf has the values of a reporter's metrics, by name and by the first label.
func samplesOf(r metrics.Reporter) map[string]float64 {
	all := map[string]float64{}
	for s := range r.Samples("cache") {
		all[s.Metric.Name+" "+s.Labels[0]] = s.Value
	}
	return all
}

// TestBill: each kind has an entry with what it holds, and the metrics agree.
func TestBill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		for i := range 300 {
			pods.Create(pod(fmt.Sprint("ns", i%3), fmt.Sprint("p", i), "n"))
		}
		c := newCache(t, pods, cache.Options{})
		start(t, c)
		require.Empty(t, c.Bill())
		require.NoError(t, c.Get(t.Context(), keyOf("ns0", "p0"), &corev1.Pod{}))
		all := metav1.PartialObjectMetadataList{}
		all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		require.NoError(t, c.List(t.Context(), &all))
		synctest.Wait()

		bill := c.Bill()
		require.Len(t, bill, 2)
		for _, b := range bill {
			require.Equal(t, 300, b.Objects)
			require.Equal(t, "all namespaces", b.Scope)
			require.Contains(t, b.Caller, "controllerruntime_test.TestBill.func1 (bill_test.go:")
			require.Greater(t, b.ReceivedBytes, uint64(300*50))
			require.Greater(t, b.HeapBytes, uint64(300*500))
		}
		require.Equal(t, []string{"/v1, Kind=Pod, typed", "/v1, Kind=Pod, metadata"}, []string{bill[0].Name, bill[1].Name}, "the dearest first")
		require.Equal(t, []string{"get", "list"}, []string{bill[0].StartedBy, bill[1].StartedBy})

		samples := samplesOf(c)
		for _, b := range bill {
			require.EqualValues(t, b.Objects, samples["tributary_informer_objects "+b.Name])
			require.EqualValues(t, b.ReceivedBytes, samples["tributary_reflector_received_bytes_total "+b.Name])
			require.InEpsilon(t, b.HeapBytes, samples["tributary_informer_heap_bytes "+b.Name], 0.01)
		}
		for i := range 200 { // the metric follows the number of objects
			pods.Remove(pod(fmt.Sprint("ns", i%3), fmt.Sprint("p", i), "n"))
		}
		synctest.Wait()
		shrunk := samplesOf(c)["tributary_informer_heap_bytes "+bill[0].Name]
		require.Less(t, shrunk, 0.9*float64(bill[0].HeapBytes))
		for _, b := range c.Bill() {
			if b.Name == bill[0].Name {
				require.InEpsilon(t, b.HeapBytes, shrunk, 0.01)
			}
		}
		require.Empty(t, causesOf(c))
	})
}

func causesOf(c metrics.Explainer) (all []string) {
	for name, cause := range c.Causes("cache") {
		all = append(all, name+": "+cause.Error())
	}
	return all
}

// TestBillReadsNoObjectThatAProgramHas: a program that writes into objects of the cache, against
// the rule, is in no race with the bill. The race detector judges.
func TestBillReadsNoObjectThatAProgramHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		labelled := func(i int) *corev1.Pod {
			p := pod("ns", fmt.Sprint("p", i), "n")
			p.Labels = map[string]string{"app": "web"}
			p.Annotations = map[string]string{"note": strings.Repeat("x", 2000)}
			return p
		}
		for i := range 100 {
			pods.Create(labelled(i))
		}
		c := newCache(t, pods, cache.Options{})
		start(t, c)
		var all corev1.PodList
		require.NoError(t, c.List(t.Context(), &all, client.UnsafeDisableDeepCopy))
		require.Len(t, all.Items, 100)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for round := range 100 {
				for i := range all.Items {
					all.Items[i].Labels["app"] = fmt.Sprint(round)
				}
			}
		}()
		for i := range 50 {
			pods.Create(labelled(100 + i))
			synctest.Wait()
			require.Equal(t, 101+i, c.Bill()[0].Objects)
			require.NotEmpty(t, samplesOf(c))
		}
		<-ended
	})
}

// TestBillOfALeanKind: the objects that are followed by name, and not those of the server.
func TestBillOfALeanKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLeanRig(t, cache.Options{})
		for i := range 20 {
			r.secrets.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("s", i)}, Data: map[string][]byte{"a": make([]byte, 2000)}})
		}
		start(t, r)
		for _, name := range []string{"s1", "s2", "none"} {
			_ = r.Get(t.Context(), keyOf("ns", name), &corev1.Secret{})
		}
		bill := r.Bill()
		require.Len(t, bill, 1)
		require.Equal(t, 2, bill[0].Objects)
		require.Equal(t, "all namespaces, by name", bill[0].Scope)
		require.InDelta(t, 2*2500, bill[0].HeapBytes, 1500)
		require.EqualValues(t, 2, samplesOf(r)["tributary_refs_objects "+bill[0].Name])
	})
}

// TestScopeOfABill: namespaces and selectors, but of many namespaces only the first ones.
func TestScopeOfABill(t *testing.T) {
	many := map[string]cache.Config{}
	for i := range 30 {
		many[fmt.Sprintf("ns%02d", i)] = cache.Config{}
	}
	selector, err := labels.Parse("app=db")
	require.NoError(t, err)
	for want, options := range map[string]cache.Options{
		`all namespaces with labels "app=db"`:                                     {DefaultLabelSelector: selector},
		"ns00, ns01, ns02, ns03, ns04, ns05, ns06, ns07, ns08, ns09, and 20 more": {DefaultNamespaces: many},
		"all other namespaces, special":                                           {DefaultNamespaces: map[string]cache.Config{"": {}, "special": {}}},
	} {
		c := newCache(t, listwatchtest.New(t, listwatchtest.Pods()), options)
		_, err := c.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		require.Equal(t, want, c.Bill()[0].Scope)
		require.Equal(t, "informer", c.Bill()[0].StartedBy)
	}
}

// made are objects as a server sends them. Ten pods in a row are of one ReplicaSet.
var made = map[string]func(i int) client.Object{
	"pods": func(i int) client.Object {
		set := i / 10
		made := &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{"app": fmt.Sprint("app", set), "hash": fmt.Sprint(set * 7919)},
				ManagedFields: []metav1.ManagedFieldsEntry{{
					Manager: "kubelet", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1",
					FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:status":{"f:podIPs":{".":{},"k:{\"ip\":\"` + fmt.Sprint("10.0.", i/256, ".", i%256) + `\"}":{}}}}`)},
				}},
			},
			Status: corev1.PodStatus{PodIP: fmt.Sprint("10.0.", i/256, ".", i%256), Phase: corev1.PodRunning},
		}
		made.Spec.NodeName = fmt.Sprint("node-", i%500)
		for j := range 3 {
			container := corev1.Container{Name: fmt.Sprint("c", j), Image: fmt.Sprint("registry.example/team/app:", set, j)}
			for k := range 8 {
				container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("VARIABLE_", k), Value: fmt.Sprint("value of ", set, " ", k)})
			}
			made.Spec.Containers = append(made.Spec.Containers, container)
		}
		return made
	},
	"secrets": func(i int) client.Object {
		return &corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{"tls.crt": bytes.Repeat([]byte{byte(i)}, 1200+i%800), "tls.key": bytes.Repeat([]byte{byte(i)}, 1600)},
		}
	},
	"widgets": func(i int) client.Object {
		var parts []any
		for j := range 12 {
			parts = append(parts, map[string]any{"name": fmt.Sprint("part-", j), "weight": int64(i*100 + j), "ready": true})
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "spec": map[string]any{"parts": parts, "note": fmt.Sprint("of ", i)},
		}}
	},
}

// encoded is a list of so many objects.
func encoded(t *testing.T, one func(int) client.Object, count int) []byte {
	t.Helper()
	var items []json.RawMessage
	var kind schema.GroupVersionKind
	for i := range count {
		obj := one(i)
		kind = obj.GetObjectKind().GroupVersionKind()
		obj.SetNamespace(fmt.Sprint("team-", i%40))
		obj.SetName(fmt.Sprintf("%s-%d", strings.ToLower(kind.Kind), i))
		obj.SetUID(types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)))
		obj.SetResourceVersion(fmt.Sprint(1000 + i))
		text, err := json.Marshal(obj)
		require.NoError(t, err)
		items = append(items, text)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind + "List", "metadata": map[string]any{"resourceVersion": "1000000"}, "items": items,
	})
	require.NoError(t, err)
	return text
}

// serving answers lists by these bytes, and watches by nothing. It keeps no object itself.
func serving(t *testing.T, list []byte) *rest.Config {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") == "true":
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: "Failure", Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest})
		case query.Get("watch") == "true":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			_, _ = w.Write(list)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// TestBillIsNearTheHeap: an estimate is within a tenth of what a collection adds to the heap, and
// within a half for a small one: there the rest is large, decoders and what they know of the type.
func TestBillIsNearTheHeap(t *testing.T) {
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	kinds.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, meta.RESTScopeNamespace)
	for name, one := range made {
		for count, part := range map[int]float64{300: 2, 20_000: 10} {
			t.Run(fmt.Sprint(name, "/", count), func(t *testing.T) {
				config := serving(t, encoded(t, one, count))
				made, err := controllerruntime.NewCache(config, cache.Options{Mapper: kinds})
				require.NoError(t, err)
				c := made.(*controllerruntime.Cache)
				start(t, c)
				before := heapInUse()
				_, err = c.GetInformer(t.Context(), one(0))
				require.NoError(t, err)
				truth := heapInUse() - before
				bill := c.Bill()[0]
				require.Equal(t, count, bill.Objects)
				t.Logf("%d on the wire, %d of heap, %d estimated: %.3f", bill.ReceivedBytes, truth, bill.HeapBytes, float64(bill.HeapBytes)/float64(truth))
				require.InDelta(t, truth, bill.HeapBytes, float64(truth)/part)
			})
		}
	}
}

func heapInUse() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

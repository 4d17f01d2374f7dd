package controllerruntime_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"

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
		}
		require.Equal(t, []string{"/v1, Kind=Pod, typed", "/v1, Kind=Pod, metadata"}, []string{bill[0].Name, bill[1].Name}, "the dearest first")
		require.Equal(t, []string{"get", "list"}, []string{bill[0].StartedBy, bill[1].StartedBy})

		samples := samplesOf(c)
		for _, b := range bill {
			require.EqualValues(t, b.Objects, samples["tributary_informer_objects "+b.Name])
			require.EqualValues(t, b.ReceivedBytes, samples["tributary_reflector_received_bytes_total "+b.Name])
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
		require.Greater(t, bill[0].ReceivedBytes, uint64(2*2000))
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

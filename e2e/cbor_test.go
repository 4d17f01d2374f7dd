package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/features"
	featuretesting "k8s.io/client-go/features/testing"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// A real API server is read as CBOR: pods, their metadata, pods as unstructured objects and custom
// resources, listed and watched. The copies equal those that are read as JSON.
func TestCBOR(t *testing.T) {
	featuretesting.SetFeatureDuringTest(t, features.ClientsAllowCBOR, true)
	featuretesting.SetFeatureDuringTest(t, features.ClientsPreferCBOR, true)
	onServers(t, readAsCBOR)
}

func readAsCBOR(t *testing.T, on server) {
	t.Parallel() // the two servers beside each other
	c := on.start(t, "--feature-gates=CBORServingAndStorage=true")
	w := newWorld(t, c)
	w.defineWidgets()
	w.fill(100)
	w.fillWidgets(100)
	for name, watchList := range map[string]bool{"watch list": true, "list and watch": false} {
		t.Run(name, func(t *testing.T) {
			var form []listwatch.Option
			if !watchList {
				form = append(form, listwatch.WithoutWatchList())
			}
			core, widgets := schema.GroupVersion{Version: "v1"}, widgetVersion
			compareEncodings[corev1.Pod](t, w, core, "pods", form)
			compareEncodings[metav1.PartialObjectMetadata](t, w, core, "pods", form)
			compareEncodings[unstructured.Unstructured](t, w, core, "pods", form)
			compareEncodings[unstructured.Unstructured](t, w, widgets, "widgets", form)
		})
	}
	t.Run("conformance", func(t *testing.T) {
		listwatchtest.Conform(t, func(t *testing.T) listwatchtest.Rig { return w.rig(t, nil) })
	})
}

// compareEncodings follows a collection in CBOR and in JSON while it changes.
func compareEncodings[O any, T interface {
	*O
	store.Object
}](t *testing.T, w *world, gv schema.GroupVersion, resource string, form []listwatch.Option) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	follow := func(types *mediaTypes, options ...listwatch.Option) *store.Indexer[T] {
		config := w.cluster.Server.Config(cluster.Agent)
		config.Wrap(types.record)
		client, err := listwatch.NewRESTClient(config, gv)
		require.NoError(t, err)
		copied := store.NewIndexer[T]()
		r := reflector.New(listwatch.FromClient[O, T](client, resource, append(options, form...)...), copied)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })
		require.NoError(t, r.WaitSynced(ctx))
		return copied
	}
	inCBOR, inJSON := &mediaTypes{}, &mediaTypes{}
	ours, reference := follow(inCBOR), follow(inJSON, listwatch.WithJSON())
	for i := range 30 {
		require.NoError(t, w.annotate(ctx, i))
		_, err := w.dynamics.Resource(widgetResource).Namespace("default").Patch(ctx, podName(i), mergePatch, roundPatch(i), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		got, want := ours.Snapshot(), reference.Snapshot()
		if got.Len() != want.Len() {
			return false
		}
		for key, obj := range want.All() {
			other, ok := got.Get(key)
			if !ok || other.GetResourceVersion() != obj.GetResourceVersion() {
				return false
			}
		}
		return true
	}, 30*time.Second, 20*time.Millisecond, "%s: the copies come to one version", resource)
	for key, want := range reference.Snapshot().All() {
		got, _ := ours.Snapshot().Get(key)
		require.True(t, apiequality.Semantic.DeepEqual(want, got), "%s %s: %v is not %v", resource, key, got, want)
	}
	require.NotEmpty(t, inCBOR.all())
	for _, answered := range inCBOR.all() {
		require.True(t, strings.HasPrefix(answered, "application/cbor"), "%s came as %s", resource, answered)
	}
	for _, answered := range inJSON.all() {
		require.True(t, strings.HasPrefix(answered, "application/json"), "%s came as %s", resource, answered)
	}
	cancel()
}

// mediaTypes are those of the answers to one client.
type mediaTypes struct {
	mu   sync.Mutex
	seen []string
}

func (m *mediaTypes) record(next http.RoundTripper) http.RoundTripper {
	return recorder(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err == nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.seen = append(m.seen, answer.Header.Get("Content-Type"))
		}
		return answer, err
	})
}

func (m *mediaTypes) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.seen...)
}

type recorder func(*http.Request) (*http.Response, error)

func (f recorder) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

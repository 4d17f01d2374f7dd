package prom_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/store"
)

// TestOneCallTracksEverything: each kind of reporter shows under its name, and all of them go.
func TestOneCallTracksEverything(t *testing.T) {
	registry, m := newMetrics(t)
	api := listwatchtest.New(t, listwatchtest.Pods())
	set := informer.NewSet(api.Server().Config())
	lease, err := informer.Acquire[corev1.Pod](set, corev1.SchemeGroupVersion.WithResource("pods"))
	require.NoError(t, err)
	defer lease.Close()
	union := informer.NewUnion[*corev1.Pod]()
	secrets := refs.New(refs.Source[*corev1.Secret]{Objects: func(string) listwatch.ListerWatcher[*corev1.Secret] { return nil }})
	cache, err := watchcache.NewCache(watchcache.Pods())
	require.NoError(t, err)
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	defer server.Close()
	apiserver.Serve(server, builtin.Pods())
	forget := m.TrackAll(map[string]metrics.Reporter{
		"a-reflector": reflector.New(api.ListerWatcher(), store.NewIndexer[*corev1.Pod]()),
		"an-informer": informer.New(api.ListerWatcher()),
		"a-set":       set,
		"a-union":     union,
		"a-node":      sources.New("node-1", sources.File(t.TempDir())),
		"a-ref":       secrets,
		"a-cache":     cache,
		"a-server":    server,
	})
	families, err := registry.Gather()
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, family := range families {
		for _, series := range family.Metric {
			for _, label := range series.Label {
				if slices.Contains([]string{"reflector", "informer", "sources", "refs", "server"}, label.GetName()) {
					shown[label.GetValue()] = true
				}
			}
		}
	}
	require.Equal(t, map[string]bool{
		"a-reflector": true, "an-informer": true, "pods/v1 as *v1.Pod": true, "a-union": true, "a-node": true, "a-ref": true, "a-cache": true, "a-server": true,
	}, shown)
	forget()
	require.Zero(t, count(t, registry))
}

package controllerruntime_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// lastSyncRVGetter is the store of util/consistency, which client-go has from 0.38 on.
type lastSyncRVGetter interface {
	LastStoreSyncResourceVersion() string
}

// hasRead is the check of util/consistency: EnsureReady of an owner with one write.
func hasRead(t *testing.T, store lastSyncRVGetter, wrote string) bool {
	t.Helper()
	read := store.LastStoreSyncResourceVersion()
	if read == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(wrote, read)
	require.NoError(t, err)
	return order <= 0
}

// TestConsistencyStore: client-go's check for one's own writes works on the stores of this cache.
// Of several namespaces it waits for the slowest one.
func TestConsistencyStore(t *testing.T) {
	for name, row := range map[string]struct {
		namespaces map[string]cache.Config
		own        []controllerruntime.Option
		watches    int
	}{
		"all namespaces": {nil, nil, 1},
		"two namespaces": {inNamespaces("ns0", "ns1"), nil, 2},
		"by one watch":   {inNamespaces("ns0", "ns1"), []controllerruntime.Option{controllerruntime.OneWatch()}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				late := newGate(pods, "/pods")
				c := newCache(t, pods, cache.Options{DefaultNamespaces: row.namespaces}, row.own...)
				of, err := c.GetInformer(t.Context(), &corev1.Pod{})
				require.NoError(t, err)
				store := of.(toolscache.SharedIndexInformer).GetStore().(lastSyncRVGetter)
				require.False(t, hasRead(t, store, "1"), "nothing is synced")
				pods.Create(pod("ns0", "p", "n"))
				start(t, c)
				pods.Server().AwaitWatches(row.watches)
				late.shut()
				wrote := pods.Create(pod("ns1", "p", "n")).ResourceVersion
				synctest.Wait()
				require.False(t, hasRead(t, store, wrote), "the event has not come")
				late.unlock()
				if row.namespaces != nil && row.own == nil {
					pods.Bookmark() // of ns0, which has no event
				}
				synctest.Wait()
				require.True(t, hasRead(t, store, wrote), fmt.Sprint("after ", store.LastStoreSyncResourceVersion()))
			})
		})
	}
}

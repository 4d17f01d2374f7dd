package collection_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/internal/cachetest"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/storetest"
)

// exact lists at one version.
func exact(t testing.TB, cache *watchcache.Cache[*corev1.Pod], version int) (names []string, err error) {
	t.Helper()
	request := watchcache.Request{}
	request.ResourceVersion = strconv.Itoa(version)
	request.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	page, err := cache.Page(t.Context(), request)
	names = []string{}
	for _, p := range page.Objects {
		names = append(names, p.Name+"@"+p.ResourceVersion)
	}
	return names, err
}

// TestExactListsAreThePast compares lists at every version of a random history with what was there.
func TestExactListsAreThePast(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 4))
	const window, writes = 150, 400
	pods := newPods(t, watchcache.WithWindow(window))
	past := map[int][]string{}
	version := 1
	for range writes {
		version++
		name := fmt.Sprintf("p%d", random.IntN(150))
		if _, err := pods.Get("ns", name); err == nil {
			_, err = pods.Remove("ns", name)
			require.NoError(t, err)
		} else {
			create(t, pods, pod(name))
		}
		for _, p := range pods.Snapshot().Sorted() {
			past[version] = append(past[version], p.Name+"@"+p.ResourceVersion)
		}
	}
	for v := 2; v <= version; v++ {
		got, err := exact(t, pods.Cache(), v)
		if v < version-window {
			require.True(t, apierrors.IsResourceExpired(err), "version %d", v)
			continue
		}
		require.NoError(t, err, "version %d", v)
		require.Equal(t, append([]string{}, past[v]...), got, "version %d", v)
	}
}

// TestNobodyKnowsWhatARelistSkipped: between two lists of a copy there are versions whose state was
// never seen.
func TestNobodyKnowsWhatARelistSkipped(t *testing.T) {
	c, err := watchcache.NewCache(watchcache.Pods())
	require.NoError(t, err)
	stored := storetest.Pod
	require.NoError(t, c.Replace(store.Items(stored("a", 2), stored("b", 3)), store.At("5")))
	require.NoError(t, c.Replace(store.Items(stored("a", 9), stored("c", 12)), store.At("20")))
	require.NoError(t, c.Add(stored("d", 21)))
	for version, want := range map[int][]string{
		5: {"a@2", "b@3"}, 20: {"a@9", "c@12"}, 21: {"a@9", "c@12", "d@21"},
	} {
		got, err := exact(t, c, version)
		require.NoError(t, err, version)
		require.Equal(t, want, got, version)
	}
	for _, version := range []int{4, 6, 9, 12, 19} {
		_, err := exact(t, c, version)
		require.True(t, apierrors.IsResourceExpired(err), version)
	}
}

// TestConcurrentWritesAreOneHistory: every watcher sees every write of every writer, in the order
// of versions.
func TestConcurrentWritesAreOneHistory(t *testing.T) {
	const writers, writes = 4, 100
	revision := watchcache.NewRevision()
	pods := newCollection(t, builtin.Pods(), revision)
	configMaps := newCollection(t, builtin.Of[*corev1.ConfigMap](), revision)
	var running sync.WaitGroup
	var follows []*cachetest.Follow
	for range 4 {
		follows = append(follows, fromNow(t, pods))
	}
	for w := range writers {
		running.Go(func() {
			for i := range writes {
				meta := metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("%d-%d", w, i)}
				_, errOfPod := pods.Create(&corev1.Pod{ObjectMeta: meta})
				_, errOfMap := configMaps.Create(&corev1.ConfigMap{ObjectMeta: meta})
				if errOfPod != nil || errOfMap != nil {
					t.Errorf("create: %v, %v", errOfPod, errOfMap)
					return
				}
			}
		})
	}
	for _, f := range follows {
		last := 0
		for range writers * writes {
			e, err, ok := f.Pull()
			require.NoError(t, err)
			require.True(t, ok)
			version, err := strconv.Atoi(e.ResourceVersion)
			require.NoError(t, err)
			require.Greater(t, version, last)
			last = version
		}
	}
	running.Wait()
	require.Equal(t, writers*writes, pods.Snapshot().Len())
	require.Equal(t, writers*writes, configMaps.Snapshot().Len())
	got, err := exact(t, pods.Cache(), 1+2*writers*writes)
	require.NoError(t, err)
	require.Len(t, got, writers*writes)
}

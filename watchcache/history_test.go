package watchcache_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
)

// exact lists at one version, without a connection.
func exact(t testing.TB, s http.Handler, version int) (names []string, code int) {
	t.Helper()
	answer := httptest.NewRecorder()
	path := fmt.Sprintf("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=%d", version)
	s.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	var list corev1.PodList
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &list))
	return listed(list.Items), answer.Code
}

func listed(pods []corev1.Pod) []string {
	names := []string{}
	for _, p := range pods {
		names = append(names, p.Name+"@"+p.ResourceVersion)
	}
	return names
}

// TestExactListsAreThePast compares lists at every version of a random history with what was there.
func TestExactListsAreThePast(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 4))
	const window, writes = 40, 100
	s, pods := newPods(t, watchcache.WithWindow(window))
	past := map[int][]string{}
	version := 1
	for range writes {
		version++
		name := fmt.Sprintf("p%d", random.IntN(10))
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
		got, code := exact(t, s, v)
		if v < version-window {
			require.Equal(t, http.StatusGone, code, "version %d", v)
			continue
		}
		require.Equal(t, http.StatusOK, code, "version %d", v)
		require.Equal(t, append([]string{}, past[v]...), got, "version %d", v)
	}
}

// TestNobodyKnowsWhatARelistSkipped: between two lists of a copy there are versions whose state was never seen.
func TestNobodyKnowsWhatARelistSkipped(t *testing.T) {
	c := newCache(t)
	s, err := watchcache.NewServer()
	require.NoError(t, err)
	t.Cleanup(s.Close)
	watchcache.ServeCache(s, c)
	require.NoError(t, c.Replace(store.Items(stored("a", 2), stored("b", 3)), store.At("5")))
	require.NoError(t, c.Replace(store.Items(stored("a", 9), stored("c", 12)), store.At("20")))
	require.NoError(t, c.Add(stored("d", 21)))
	for version, want := range map[int][]string{
		5: {"a@2", "b@3"}, 20: {"a@9", "c@12"}, 21: {"a@9", "c@12", "d@21"},
	} {
		got, code := exact(t, s, version)
		require.Equal(t, http.StatusOK, code, version)
		require.Equal(t, want, got, version)
	}
	for _, version := range []int{4, 6, 9, 12, 19} {
		_, code := exact(t, s, version)
		require.Equal(t, http.StatusGone, code, version)
	}
}

// TestConcurrentWritesAreOneHistory: every watcher sees every write of every writer, in the order of versions.
func TestConcurrentWritesAreOneHistory(t *testing.T) {
	const writers, writes = 4, 100
	s, pods := newPods(t)
	configMaps := watchcache.Serve(s, watchcache.Core[*corev1.ConfigMap]("configmaps", "ConfigMap"))
	var running sync.WaitGroup
	var follows []*follow
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
			e, err, ok := f.pull()
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
	got, code := exact(t, s, 1+2*writers*writes)
	require.Equal(t, http.StatusOK, code)
	require.Len(t, got, writers*writes)
}

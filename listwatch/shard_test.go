package listwatch_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// TestShards: of a server that does not shard, each object is in the copy of exactly one part, from
// its creation to its end. No probe has anything against a part, also after an interruption.
func TestShards(t *testing.T) {
	for _, name := range []string{"client", "functions"} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testShards(t, name == "client") }) })
	}
}

func testShards(t *testing.T, byClient bool) {
	const count = 3
	var said atomic.Int32
	klog.SetLogger(funcr.New(func(_, line string) {
		if strings.Contains(line, "does not shard") {
			said.Add(1)
		}
	}, funcr.Options{}))
	t.Cleanup(func() { klog.SetLogger(logr.Discard()) })
	pods := listwatchtest.New(t, listwatchtest.Pods())
	create := func(i int) *corev1.Pod {
		return pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("pod-%02d", i)}})
	}
	all := map[string]bool{}
	var first []*corev1.Pod
	for i := range 30 {
		first = append(first, create(i))
		all[store.KeyOf(first[i])] = true
	}
	var parts [count]*store.Indexer[*corev1.Pod]
	var reflectors [count]*reflector.Reflector[*corev1.Pod]
	for i := range count {
		source := listwatch.FromClient[corev1.Pod](restClient(t, pods.Server().Config(), v1Version), "pods", listwatch.Shard(i, count))
		if !byClient {
			source = listwatch.FromClientGo[*corev1.Pod](listwatch.ToClientGo(pods.ListerWatcher()), listwatch.Shard(i, count))
		}
		parts[i] = store.NewIndexer[*corev1.Pod]()
		reflectors[i] = reflector.New(source, parts[i])
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- reflectors[i].Run(ctx) }()
		defer func() {
			cancel()
			require.NoError(t, <-ended)
		}()
		require.NoError(t, reflectors[i].WaitSynced(t.Context()))
	}
	whole := func() {
		t.Helper()
		synctest.Wait()
		held := map[string]bool{}
		for i, part := range parts {
			require.NotZero(t, part.Snapshot().Len())
			require.NoError(t, reflectors[i].Ready(3*time.Minute))
			require.Equal(t, map[reflector.Class]int{reflector.OK: 1}, reflectors[i].Status().Lists)
			for key := range part.Snapshot().Keys() {
				require.False(t, held[key], "two parts have %s", key)
				held[key] = true
			}
		}
		require.Equal(t, all, held)
	}
	whole()
	for i := range 10 {
		delete(all, store.KeyOf(pods.Remove(first[i])))
		all[store.KeyOf(create(40+i))] = true
	}
	time.Sleep(time.Second)
	whole()
	pods.Disconnect()
	for range 10 { // in which all objects are compared
		time.Sleep(time.Minute)
		pods.Bookmark()
		time.Sleep(time.Second)
		whole()
	}
	require.EqualValues(t, count, said.Load(), "each part says once that the server does not shard")
}

// TestShardRequest: a server that shards is asked to, by each request of a copy.
func TestShardRequest(t *testing.T) {
	config, requests := recorder(t)
	lw := listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods", listwatch.Shard(1, 3))
	for name, request := range map[string]func(){
		"list":  func() { readList(lw.List(t.Context(), metav1.ListOptions{})) },
		"watch": func() { readWatch(lw.Watch(t.Context(), metav1.ListOptions{})) },
		"bytes": func() { readList(lw.Encoded().List(t.Context(), metav1.ListOptions{})) },
		"metadata": func() {
			list, ok := lw.Metadata(t.Context(), metav1.ListOptions{})
			require.True(t, ok)
			readList(list)
		},
		"one object": func() {
			list, ok := lw.Lookup(t.Context(), "ns", "name")
			require.True(t, ok)
			readList(list)
		},
	} {
		request()
		require.Equal(t, []string{"shardRange(object.metadata.uid, '0x5555555555555555', '0xaaaaaaaaaaaaaaaa')"},
			(<-requests).URL.Query()["shardSelector"], name)
	}
}

// TestShardIsAScope: readers of one part can share a copy, and others cannot.
func TestShardIsAScope(t *testing.T) {
	scope := listwatch.ScopeOf(listwatch.Shard(0, 2))
	require.Equal(t, scope, listwatch.ScopeOf(listwatch.Shard(0, 2)))
	require.NotEqual(t, scope, listwatch.ScopeOf(listwatch.Shard(1, 2)))
	require.Equal(t, "shard shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')", scope.String())
	for _, bad := range [][2]int{{-1, 2}, {2, 2}, {0, 0}} {
		require.Panics(t, func() { listwatch.Shard(bad[0], bad[1]) })
	}
}

// TestSelectorsOfShards: a selector of ranges selects as the API server's own, which compares the
// texts of hash and bound.
func TestSelectorsOfShards(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	bound := func() string {
		if random.IntN(4) == 0 {
			return "0x1" + strings.Repeat("0", 16)
		}
		return fmt.Sprintf("0x%x", random.Uint64()>>random.IntN(20))
	}
	less := func(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }
	selected := 0
	for range 500 {
		field := []string{"uid", "namespace"}[random.IntN(2)]
		var ranges [][2]string
		var terms []string
		for range 1 + random.IntN(3) {
			from, to := bound(), bound()
			ranges = append(ranges, [2]string{from, to})
			terms = append(terms, fmt.Sprintf("shardRange(object.metadata.%s, '%s', '%s')", field, from, to))
		}
		var want []string
		list := &corev1.PodList{}
		for i := range 20 {
			obj := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("ns-", random.Uint64()), Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(random.Uint64()))}}
			list.Items = append(list.Items, obj)
			value := map[string]string{"uid": string(obj.UID), "namespace": obj.Namespace}[field]
			of := fnv.New64a()
			of.Write([]byte(value))
			hash := fmt.Sprintf("0x%016x", of.Sum64())
			if slices.ContainsFunc(ranges, func(r [2]string) bool { return !less(hash, r[0]) && less(hash, r[1]) }) {
				want = append(want, obj.Name)
			}
		}
		lw := listwatch.FromFuncs[*corev1.Pod](
			func(context.Context, metav1.ListOptions) (*corev1.PodList, error) { return list, nil },
			func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }, adapters.Shard(strings.Join(terms, " || ")).(listwatch.FuncsOption))
		var got []string
		for obj, err := range lw.List(t.Context(), metav1.ListOptions{}).Items {
			require.NoError(t, err)
			got = append(got, obj.Name)
		}
		require.Equal(t, want, got, "seed %d: %s", seed, terms)
		selected += len(got)
	}
	require.NotZero(t, selected)
	for _, bad := range []string{
		"", "everything", "shardRange(metadata.uid, '0x0', '0x1')", "shardRange(object.metadata.uid, '0x0', '0x1') || true",
		"shardRange(object.metadata.uid, '0x0', '0x1') || shardRange(object.metadata.namespace, '0x0', '0x1')",
	} {
		require.Panics(t, func() { adapters.Shard(bad) }, bad)
	}
}

package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
)

// often is the shortest time between two probes.
const often = 5 * time.Second

// The address leads to another cluster, whose versions cover the copy's: a watch goes on there
// without a sign, and other pods have the names of those held. A probe finds the contradiction. The
// copy is not right, and nothing is safe to prune, until a list has replaced it.
func TestAddressLeadsToAnotherCluster(t *testing.T) {
	t.Parallel()
	onServers(t, addressLeadsToAnotherCluster)
}

func addressLeadsToAnotherCluster(t *testing.T, on server) {
	t.Parallel()
	const pods = 20
	first, second := on.start(t), on.start(t)
	w, other := newWorld(t, first), newWorld(t, second)
	w.fill(pods)
	other.fill(pods)
	theirs := other.newest(t, pods-1)
	for !older(theirs, w.newest(t, 0)) { // no event of the other cluster's pods is still to come
		continue
	}
	proxy := netfault.Listen(t, first.Server.Address())
	config := first.Server.ConfigVia(proxy.Address(), cluster.Agent)
	config.CAData = append(append([]byte{}, config.CAData...), second.Server.Config("").CAData...)

	relists := newGate()
	f := other.followPodsTapped(t, &wire{hold: relists.hold}, config, "", nil, reflector.WithProof(often))
	client, err := kubernetes.NewForConfig((&wire{hold: relists.hold}).on(config))
	require.NoError(t, err)
	agent := startAgent(t, sources.New(nodeName(1), sources.APIServer(client.CoreV1().RESTClient(), reflector.WithProof(often)).WithoutNode()))
	requireSynced(t, f, 30*time.Second)
	agent.until(t, func() bool { return agent.s.SafeToPrune(sources.APISource) })
	require.NoError(t, f.ready(time.Minute))
	for !older(f.version(), other.newest(t, pods-1)) { // by one pod alone
		continue
	}

	held := f.version()
	relists.closed.Store(true)
	proxy.Switch(second.Server.Address())
	proxy.Cut()
	switched := time.Now()
	contradicted := func() bool {
		s := f.status()
		return s.Contradiction != nil && !agent.s.SafeToPrune(sources.APISource) && strings.Contains(fmt.Sprint(agent.s.Ready(0)), "contradicts the copy")
	}
	require.Eventually(t, contradicted, 25*time.Second, 5*time.Millisecond, "%s; %+v%s", f.status(), agent.s.Status(), brief(f.sent().since(switched)))
	found := time.Since(switched)
	require.Equal(t, reflector.History, f.status().Verdict(0).Class)
	require.ErrorContains(t, f.ready(time.Hour), "contradicts the copy")

	close(relists.opened)
	require.Eventually(t, func() bool { return f.difference(t.Context()) == nil && f.ready(time.Minute) == nil }, 30*time.Second-time.Since(switched), 5*time.Millisecond,
		"%s%s", f.status(), brief(f.sent().since(switched)))
	healed := time.Since(switched)
	require.Equal(t, map[reflector.Class]int{reflector.OK: 1, reflector.History: 1}, f.status().Lists)
	agent.until(t, func() bool { return agent.s.SafeToPrune(sources.APISource) })
	t.Logf("another cluster: both copies contradicted %s after the switch, whole %s after it; versions %s before and %s after it",
		found.Round(10*time.Millisecond), healed.Round(10*time.Millisecond), held, f.version())
}

// newest changes the i-th pod, and returns its version.
func (w *world) newest(t testing.TB, i int) string {
	t.Helper()
	pod, err := w.client.CoreV1().Pods("default").Patch(t.Context(), podName(i), mergePatch, roundPatch(rand.Int()), metav1.PatchOptions{})
	require.NoError(t, err)
	return pod.ResourceVersion
}

// gate holds watch lists back from closed to the end of opened.
type gate struct {
	closed atomic.Bool
	opened chan struct{}
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) hold(r *http.Request) {
	if !g.closed.Load() || r.URL.Query().Get("sendInitialEvents") != "true" {
		return
	}
	select {
	case <-g.opened:
	case <-r.Context().Done():
	}
}

// A link is slower than the writes: events come all the time, each of them later. Contact is no
// proof, and the copy says how old it is.
func TestSlowLinkIsBehind(t *testing.T) {
	t.Parallel()
	onServers(t, slowLinkIsBehind)
}

func slowLinkIsBehind(t *testing.T, on server) {
	t.Parallel()
	const bound = 30 * time.Second
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(nodes)
	proxy := netfault.Listen(t, c.Server.Address())
	f := w.followPods(t, c.Server.ConfigVia(proxy.Address(), cluster.Agent), "", nil, reflector.WithProof(often))
	requireSynced(t, f, 30*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	writers.Go(func() { // some 5 KB each
		large := []byte(`{"metadata":{"annotations":{"e2e.tributary.dev/large":"` + strings.Repeat("large", 1000) + `"}}}`)
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = w.client.CoreV1().Pods("default").Patch(ctx, podName(i%nodes), mergePatch, roundPatch(i), metav1.PatchOptions{})
			_, _ = w.client.CoreV1().Pods("default").Patch(ctx, podName(i%nodes), mergePatch, large, metav1.PatchOptions{})
		}
	})
	defer writers.Wait()
	defer cancel()
	require.NoError(t, f.ready(bound))

	proxy.Throttle(16 << 10)
	slow := time.Now()
	require.Eventually(t, func() bool { return f.ready(bound) != nil }, 2*bound, 10*time.Millisecond, "%s", f.status())
	s := f.status()
	t.Logf("a slow link: not ready %s after it became slow: %v; heard %s ago, class %q, %d events", time.Since(slow).Round(100*time.Millisecond),
		f.ready(bound), time.Since(s.LastContact).Round(10*time.Millisecond), s.Class, s.Events)
	require.Equal(t, reflector.Stale, s.Verdict(bound).Class)
	require.Less(t, time.Since(s.LastContact), bound/3, "contact goes on")
	require.Greater(t, time.Since(s.ProvenAt), bound)

	cancel()
	writers.Wait()
	proxy.Throttle(0)
	fast := time.Now()
	require.Eventually(t, func() bool {
		_ = w.annotate(t.Context(), 0) // an event moves the copy up to the version of a probe
		return f.ready(3*often) == nil
	}, bound, 200*time.Millisecond, "%s", f.status())
	t.Logf("a slow link: proven anew %s after it was fast again, lists %v", time.Since(fast).Round(100*time.Millisecond), f.status().Lists)
	requireWhole(t, f, 10*time.Second)
}

// etcd is away, and the server goes on with watches and bookmarks of an unchanged version: before
// the end of a watch it sends one in any case. Contact is fresh, and the copy is not ready.
func TestBookmarksWithoutEtcdProveNothing(t *testing.T) {
	t.Parallel()
	onServers(t, bookmarksWithoutEtcdProveNothing)
}

func bookmarksWithoutEtcdProveNothing(t *testing.T, on server) {
	t.Parallel()
	const bound = 15 * time.Second
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(nodes)
	f := w.followPods(t, c.Server.Config(cluster.Agent), "", nil, reflector.WithProof(often), reflector.WithWatchTimeout(5*time.Second))
	requireSynced(t, f, 30*time.Second)
	require.NoError(t, w.annotate(t.Context(), 0))
	require.NoError(t, f.ready(bound))

	c.Etcd.Kill()
	killed := time.Now()
	require.Eventually(t, func() bool {
		s := f.status()
		return s.Verdict(bound).Class == reflector.Stale && s.LastContact.After(killed)
	}, 2*bound, 5*time.Millisecond, "%s%s", f.status(), brief(f.sent().since(killed)))
	s := f.status()
	t.Logf("without etcd: not ready %s after it was killed: %v; heard %s after that, %d watches", time.Since(killed).Round(100*time.Millisecond),
		f.ready(bound), s.LastContact.Sub(killed).Round(100*time.Millisecond), s.Watches)
	require.True(t, s.LastProgress.Before(killed), "all of one version")
	require.Equal(t, nodes, f.account().held, "the content stays")

	c.Etcd.Start()
	w.writable(t)
	back := time.Now()
	require.Eventually(t, func() bool {
		_ = w.annotate(t.Context(), 0)
		return f.ready(bound) == nil
	}, 20*time.Second, 200*time.Millisecond, "%s", f.status())
	t.Logf("without etcd: proven anew %s after it took writes", time.Since(back).Round(100*time.Millisecond))
	requireWhole(t, f, 10*time.Second)
	require.Equal(t, 1, lists(f), "%v", f.status().Lists)
}

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/reflector"
)

// A4: etcd is gone, killed or frozen, and the API server lives. The store keeps its content, Status
// says that nothing comes within a liveness period that is shorter than the time between two
// bookmarks, and all is well again without a restart.
func TestEtcdDown(t *testing.T) {
	t.Parallel()
	onServers(t, etcdDown)
}

func etcdDown(t *testing.T, on server) {
	t.Parallel()
	away := time.Duration(on.size(12, 8)) * time.Second
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(on.pods())
	result := table("etcd", "lists before and after", "shown after", "server took writes after", "fresh again after that", "status")
	for _, fault := range []struct {
		name       string
		strike, up func()
	}{
		{"killed", c.Etcd.Kill, c.Etcd.Start},
		{"frozen", c.Etcd.Pause, c.Etcd.Resume},
	} {
		t.Run(fault.name, func(t *testing.T) {
			f := w.followPods(t, c.Server.Config(cluster.Agent), "", nil, reflector.WithLiveness(liveness))
			requireSynced(t, f, 30*time.Second)
			w.freshness(t, time.Now(), 5*time.Second, await(f, nodeName(0)))
			held, listed, began := f.account().held, lists(f), time.Now()
			line := watchStatus(t, f)
			fault.strike()
			struck := time.Now()
			shown := untilClass(t, line, reflector.Silent, 0, 2*liveness)
			pass(away - time.Since(struck))
			s := f.status()
			t.Logf("%s: %s; %s%s", fault.name, line, s, brief(f.sent().since(began)))
			require.Equal(t, held, f.account().held, "the content stays")
			require.True(t, s.LastProgress.Before(struck), "the version stands still")
			fault.up()
			up := time.Now()
			w.writable(t)
			back := time.Now()
			took := w.freshness(t, back, time.Minute, await(f, nodeName(0)))[0]
			requireWhole(t, f, 20*time.Second)
			t.Logf("%s: %s%s", fault.name, line, brief(f.sent().since(up)))
			result.add(fault.name, []int{listed, lists(f)}, shown.Round(10*time.Millisecond), back.Sub(up).Round(10*time.Millisecond), took.Round(time.Millisecond), line)
		})
	}
	t.Logf("A4: etcd away for %s, liveness %s\n%s", away, liveness, result)
}

// writable waits until the server takes writes.
func (w *world) writable(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool { return w.annotate(t.Context(), 0) == nil }, time.Minute, 10*time.Millisecond)
}

// A4: with the default liveness, on a server that has been up for a while. It goes on sending
// bookmarks when etcd is dead, all of one version: contact goes on, progress does not, and a bound
// on that is what makes Ready fail.
func TestEtcdDownForMinutes(t *testing.T) {
	t.Parallel()
	onServers(t, etcdDownForMinutes)
}

func etcdDownForMinutes(t *testing.T, on server) {
	if !full {
		t.Skip("takes five minutes of waiting for bookmarks: set TRIBUTARY_E2E_FULL")
	}
	t.Parallel()
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(nodes)
	f := w.followPods(t, c.Server.Config(cluster.Agent), "", nil)
	requireSynced(t, f, 30*time.Second)
	synced := f.version()
	require.Eventually(t, func() bool { return older(synced, f.version()) }, 150*time.Second, 100*time.Millisecond, "the first bookmark")
	require.NoError(t, f.ready(3*time.Minute))
	c.Etcd.Kill()
	killed, held := time.Now(), f.version()
	pass(150 * time.Second)
	s := f.status()
	t.Logf("A4: etcd dead for 150 s: heard %s after that, progress %s before it, at version %s; %s; ready: %v",
		s.LastContact.Sub(killed).Round(time.Second), killed.Sub(s.LastProgress).Round(time.Second), held, s, f.ready(3*time.Minute))
	require.Equal(t, held, s.ResourceVersion)
	require.True(t, s.LastContact.After(killed), "bookmarks go on coming")
	require.True(t, s.LastProgress.Before(killed), "all of one version")
	require.Zero(t, s.Failures, "no request has failed")
	require.Error(t, s.ProbeErr, "the probes ask etcd")
	require.ErrorContains(t, f.ready(2*time.Minute), "proven for "+s.ProvenAt.Format(time.TimeOnly))
	require.Equal(t, nodes, f.account().held, "the content stays")
	c.Etcd.Start()
	w.writable(t)
	w.freshness(t, time.Now(), 30*time.Second, await(f, nodeName(0)))
	requireWhole(t, f, 20*time.Second)
	require.Equal(t, 1, lists(f))
	require.NoError(t, f.ready(3*time.Minute))
}

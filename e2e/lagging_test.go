package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/reflector"
)

// A8: two API servers on one etcd, and the second one's view of etcd stands still. A client that
// fails over to it asks for a version that it does not have. The store must not go back in time,
// must say what is wrong, and must be fresh again once the second server is, or once the client is
// back at the first one.
func TestFailoverToStaleServer(t *testing.T) {
	t.Parallel()
	onServers(t, failoverToStaleServer)
}

func failoverToStaleServer(t *testing.T, on server) {
	t.Parallel()
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(1000)
	etcd := netfault.Listen(t, strings.TrimPrefix(c.Etcd.URL(), "http://"))
	second := c.AddServer("http://" + etcd.Address())
	balancer := netfault.Listen(t, c.Server.Address())
	result := table("copy", "status while the server is behind", "version", "lists", "fresh after it caught up")
	for _, way := range []struct {
		name    string
		options []reflector.Option
	}{
		{"watch list", nil},
		{"pages of 500", []reflector.Option{reflector.WithPageSize(500)}},
	} {
		t.Run(way.name, func(t *testing.T) {
			config := c.Server.ConfigVia(balancer.Address(), cluster.Agent)
			f := w.followPods(t, config, "", nil, append(way.options, reflector.WithLiveness(liveness))...)
			requireSynced(t, f, 30*time.Second)
			etcd.Pause() // the second server sees nothing from here on
			w.each(200, w.annotate)
			w.freshness(t, time.Now(), 5*time.Second, await(f, nodeName(0)))
			held, began := f.version(), time.Now()

			line := watchStatus(t, f)
			balancer.Switch(second.Address())
			balancer.Cut()
			// Watches are found silent, and lists are refused.
			pass(time.Duration(on.size(20, 10)) * time.Second)
			s, behind := f.status(), line.String()
			t.Logf("%s: %s; %s%s", way.name, behind, s, brief(f.sent().since(began)))
			require.Equal(t, held, f.version(), "no news, and nothing older")

			etcd.Resume()
			took := w.freshness(t, time.Now(), time.Minute, await(f, nodeName(0)))[0]
			requireWhole(t, f, 20*time.Second)
			result.add(way.name, behind, s.ResourceVersion, f.status().Lists, took.Round(10*time.Millisecond))
			t.Logf("%s: %s", way.name, brief(f.sent().since(began)))

			balancer.Switch(c.Server.Address())
			balancer.Cut()
			w.freshness(t, time.Now(), 10*time.Second, await(f, nodeName(0)))
			require.NoError(t, f.stop())
		})
	}
	t.Logf("A8: failing over to a server that is behind\n%s", result)
}

// A8: the server ends watches at their timeout, again and again. Each is followed by one from where
// it ended.
func TestServerTimeouts(t *testing.T) {
	t.Parallel()
	onServers(t, serverTimeouts)
}

func serverTimeouts(t *testing.T, on server) {
	t.Parallel()
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(nodes)
	quiet := w.followPods(t, c.Server.Config(cluster.Agent), nodeName(1), nil, reflector.WithWatchTimeout(2*time.Second))
	busy := w.followPods(t, c.Server.Config(cluster.Agent), nodeName(2), nil, reflector.WithWatchTimeout(2*time.Second))
	for _, f := range []follower{quiet, busy} {
		requireSynced(t, f, 30*time.Second)
	}
	lines := map[follower]*timeline{quiet: watchStatus(t, quiet), busy: watchStatus(t, busy)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(on.size(20, 10))*time.Second)
	defer cancel()
	for ticker := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; <-ticker.C {
		require.NoError(t, w.annotate(t.Context(), 2))
	}
	for f, line := range lines {
		requireWhole(t, f, 5*time.Second)
		require.Equal(t, 1, lists(f), brief(f.sent().log()))
		require.Equal(t, 0, f.status().Failures, "%s: %s", f.name(), line)
		t.Logf("A8: server timeouts, %s: %d watches, %d events, %d lists, %s", f.name(), f.status().Watches, f.status().Events, lists(f), line)
	}
}

// A8: nothing happens but bookmarks. They show that the follower and its server are in contact:
// about one a minute, but the first one as late as after two minutes where the server has just
// started. The default liveness bears with that.
func TestBookmarksOnly(t *testing.T) {
	t.Parallel()
	onServers(t, bookmarksOnly)
}

func bookmarksOnly(t *testing.T, on server) {
	if !full {
		t.Skip("takes three minutes of waiting for bookmarks: set TRIBUTARY_E2E_FULL")
	}
	t.Parallel()
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(nodes)
	f := w.followPods(t, c.Server.Config(cluster.Agent), nodeName(1), nil)
	requireSynced(t, f, 30*time.Second)
	began, last := time.Now(), f.status().LastContact
	var contacts []time.Duration
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for time.Since(began) < 230*time.Second {
		<-ticker.C
		if now := f.status().LastContact; now.After(last) {
			contacts, last = append(contacts, now.Sub(began).Round(100*time.Millisecond)), now
		}
	}
	s := f.status()
	t.Logf("A8: nothing but bookmarks for 230 s: heard at %v, %d watches, %d failures; %s%s", contacts, s.Watches, s.Failures, s, brief(f.sent().log()))
	require.GreaterOrEqual(t, len(contacts), 2)
	require.Zero(t, s.Failures)
	require.Equal(t, 1, s.Watches)
}

package e2e_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
)

// freshWithin is what nine copies of ten may need to be fresh once the server is ready again; the
// tenth, on a machine that does something else too, may need its double.
const freshWithin = 2 * time.Second

// startTime is what the server needs to be ready, about.
const startTime = 2500 * time.Millisecond

// A2: the server is killed again and again while pods and custom resources are written. Each time
// the copies come to equal the server's state, by one list, and nothing in them goes back in time.
func TestRestartsUnderWriter(t *testing.T) {
	onServers(t, restartsUnderWriter)
}

func restartsUnderWriter(t *testing.T, on server) {
	t.Parallel() // the two servers beside each other
	restarts := on.size(20, 4)
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(on.pods())
	w.defineWidgets()
	w.fillWidgets(on.pods())
	config, json := c.Server.Config(cluster.Agent), []listwatch.Option{listwatch.WithJSON()}
	followers := []follower{
		w.followPods(t, config, "", nil),
		w.followPods(t, config, nodeName(1), json),
		w.followMetadata(t, config, "", nil),
		w.followWidgets(t, config, "", nil),
	}
	for _, f := range followers {
		requireSynced(t, f, 30*time.Second)
	}
	writer := w.startWriter(10*time.Millisecond, true)

	var fresh []time.Duration
	for range restarts {
		writer.written(60)
		counted := make([]int, len(followers))
		writer.quietly(func() {
			for i, f := range followers {
				counted[i] = lists(f)
			}
			w.advance()
			c.Server.Kill()
		})
		killed := time.Now()
		ready := c.Server.Restart()
		mine := []awaited{await(followers[0], nodeName(1)), await(followers[1], nodeName(1)), await(followers[2], nodeName(1))}
		took := w.freshness(t, ready, 30*time.Second, mine...)
		for i, f := range followers[:len(mine)] {
			// A server that starts under load may leave a request without an answer.
			if took[i] > 2*time.Second {
				t.Logf("%s: fresh %s after readiness; %s%s", f.name(), took[i].Round(time.Millisecond), f.status(), brief(f.sent().since(killed)))
			}
		}
		fresh = append(fresh, took...)
		writer.quietly(func() {
			for i, f := range followers {
				// A copy of which nothing was written since is equal before it has been back.
				require.Eventually(t, func() bool { return lists(f) > counted[i] }, 20*time.Second, 10*time.Millisecond,
					"%s: %s%s", f.name(), f.status(), brief(f.sent().since(killed)))
				requireWhole(t, f, 20*time.Second)
				require.Equal(t, counted[i]+1, lists(f), "%s: one relist, %v%s", f.name(), f.status().Lists, brief(f.sent().since(killed)))
			}
		})
	}
	writer.end()

	rows := table("copy", "objects", "lists by cause", "watches", "events", "deletions delivered", "back in time", "requests")
	for _, f := range followers {
		requireWhole(t, f, 20*time.Second)
		a, s := f.account(), f.status()
		require.Equal(t, map[reflector.Class]int{reflector.OK: 1, reflector.Expired: restarts}, s.Lists, f.name())
		rows.add(f.name(), a.held, s.Lists, s.Watches, s.Events, a.deletions, len(a.violations), len(f.sent().log()))
	}
	t.Logf("A2: %d restarts\n%s\n%s", restarts, writer, rows)
	t.Logf("A2: from ready to fresh: median %s, p90 %s, longest %s", quantile(fresh, 0.5), quantile(fresh, 0.9), quantile(fresh, 1))
}

// A2: outages of several lengths, with client-go's reflector on the same server in the same run.
func TestFreshAfterOutage(t *testing.T) {
	onServers(t, freshAfterOutage)
}

func freshAfterOutage(t *testing.T, on server) {
	const copies = 10
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(on.pods())
	balancer := netfault.Listen(t, c.Server.Address())
	ours, behind, theirs := make([]follower, copies), make([]follower, copies), make([]*clientGo, copies)
	for i := range copies {
		ours[i] = w.followPods(t, c.Server.Config(cluster.Agent), nodeName(i), nil)
		requireSynced(t, ours[i], 30*time.Second)
		// A load balancer takes connections while the server is away, and ends them at once.
		behind[i] = w.followPods(t, c.Server.ConfigVia(balancer.Address(), cluster.Agent), nodeName(i), nil)
		requireSynced(t, behind[i], 30*time.Second)
		theirs[i] = followAsClientGo(t, c.Server.Config(cluster.Agent), nodeName(i))
	}
	rows := table("server away for", "ours: median", "longest", "behind a balancer: median", "longest", "client-go: median", "longest")
	outages := []time.Duration{5 * time.Second}
	if !on.short {
		outages = append(outages, 15*time.Second)
	}
	if full {
		outages = append(outages, time.Minute)
	}
	for _, outage := range outages {
		counted := lists(ours[0])
		w.advance()
		c.Server.Kill()
		killed := time.Now()
		pass(outage - startTime)
		ready := c.Server.Restart()
		away := ready.Sub(killed)
		awaiting := make([]awaited, 0, 3*copies)
		for i, f := range slices.Concat(ours, behind) {
			awaiting = append(awaiting, await(f, nodeName(i%copies)))
		}
		for i, peer := range theirs {
			awaiting = append(awaiting, awaited{"client-go", nodeName(i), peer.holds})
		}
		took := w.freshness(t, ready, 3*time.Minute, awaiting...)
		row := []any{away.Round(100 * time.Millisecond)}
		for some := range slices.Chunk(took, copies) {
			row = append(row, quantile(some, 0.5), quantile(some, 1))
		}
		rows.add(row...)
		require.Equal(t, counted+1, lists(ours[0]), brief(ours[0].sent().since(killed)))
		// The other server is back within a second, so that a reader's whole pause counts.
		if !on.short {
			require.Less(t, quantile(took[:2*copies], 0.9), freshWithin)
		}
		for i, f := range slices.Concat(ours, behind) {
			require.Less(t, took[i], 2*freshWithin, "%s%s", f.name(), brief(f.sent().since(ready.Add(-3*time.Second))))
		}
	}
	t.Logf("A2: from ready to fresh, %d copies each\n%s", copies, rows)
}

// A2: agents that lost their server together do not come back together.
func TestArrivalsAfterOutage(t *testing.T) {
	onServers(t, arrivalsAfterOutage)
}

func arrivalsAfterOutage(t *testing.T, on server) {
	const agents = 200
	outage := time.Duration(on.size(15, 5)) * time.Second
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(on.pods())
	followers := make([]follower, agents)
	for i := range followers {
		followers[i] = w.followPods(t, c.Server.Config(cluster.Agent), nodeName(i), nil)
	}
	for _, f := range followers {
		requireSynced(t, f, time.Minute)
	}
	w.advance()
	c.Server.Kill()
	killed := time.Now()
	pass(outage - startTime)
	ready := c.Server.Restart()
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(followers, func(f follower) bool { return lists(f) < 2 })
	}, time.Minute, 20*time.Millisecond)
	var answers, arrivals, fresh []time.Duration
	for _, f := range followers {
		for _, r := range f.sent().since(killed.Add(time.Second)) {
			if r.code != 0 {
				answers = append(answers, r.at.Sub(ready))
			}
			if r.code == http.StatusOK && r.kind == watchList {
				arrivals = append(arrivals, r.at.Sub(ready))
			}
		}
		fresh = append(fresh, f.account().replacedAt.Sub(ready))
	}
	t.Logf("A2: %d agents after %s away: requests that were answered, with whatever, from the server's readiness\n%s",
		agents, ready.Sub(killed).Round(100*time.Millisecond), histogram(answers, 100*time.Millisecond))
	t.Logf("A2: their lists\n%s", histogram(arrivals, 100*time.Millisecond))
	t.Logf("A2: fresh after a median of %s, p90 %s, longest %s", quantile(fresh, 0.5), quantile(fresh, 0.9), quantile(fresh, 1))
	require.Less(t, quantile(fresh, 0.9), freshWithin)
	require.Less(t, slices.Max(fresh), 2*freshWithin)
	require.Less(t, busiest(answers, 100*time.Millisecond), agents/3, "they came together")
}

package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/reflector"
)

// A3: a connection is cut while the server lives. The watch goes on from the last version, and
// nothing is listed.
func TestCutConnectionResumes(t *testing.T) {
	onServers(t, cutConnectionResumes)
}

func cutConnectionResumes(t *testing.T, on server) {
	const cuts = 10
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(on.pods())
	proxy := netfault.Listen(t, c.Server.Address())
	f := w.followPods(t, c.Server.ConfigVia(proxy.Address(), cluster.Agent), "", nil)
	requireSynced(t, f, 30*time.Second)
	writer := w.startWriter(10*time.Millisecond, false)

	var back []time.Duration
	for i := range cuts {
		w.freshness(t, time.Now(), 10*time.Second, await(f, nodeName(0)))
		held, at := f.version(), time.Now()
		if i%2 == 0 {
			proxy.Cut()
		} else {
			proxy.Reset()
		}
		back = append(back, w.freshness(t, at, 10*time.Second, await(f, nodeName(0)))...)
		sent := f.sent().since(at)
		require.Len(t, sent, 1, brief(sent))
		require.Equal(t, watches, sent[0].kind)
		require.False(t, older(sent[0].version, held), "went on from %s, held %s", sent[0].version, held)
	}
	writer.end()
	requireWhole(t, f, 10*time.Second)
	require.Equal(t, 1, lists(f))
	require.Less(t, quantile(back, 0.5), 200*time.Millisecond, "the first retry is at once; a write and two handshakes are in it")
	t.Logf("A3: %d connections cut or reset: %d lists, %d watches, %d events, %d connections; fresh again after a median of %s, %s at most",
		cuts, lists(f), f.status().Watches, f.status().Events, proxy.Accepted(), quantile(back, 0.5), quantile(back, 1))
}

// A3: etcd is compacted and the server restarted, so that the version a watch goes on from is gone.
// The server says so with an ERROR event in a stream that it answered with 200, and one relist
// follows.
func TestExpiredWatchRelistsOnce(t *testing.T) {
	onServers(t, expiredWatchRelistsOnce)
}

func expiredWatchRelistsOnce(t *testing.T, on server) {
	t.Parallel() // the two servers beside each other
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(500)
	f := w.followPods(t, c.Server.Config(cluster.Agent), "", nil)
	requireSynced(t, f, 30*time.Second)
	w.advance()
	c.Server.Kill()
	killed := time.Now()
	c.Etcd.Compact()
	c.Server.Restart()
	w.freshness(t, killed, time.Minute, await(f, nodeName(0)))
	requireWhole(t, f, 10*time.Second)
	sent := f.sent().since(killed)
	require.Equal(t, 1, count(sent, watches), brief(sent))
	require.Equal(t, 1, count(sent, watchList), brief(sent))
	require.Equal(t, map[reflector.Class]int{reflector.OK: 1, reflector.Expired: 1}, f.status().Lists)
	t.Logf("A3: compaction and restart: %v", f.status().Lists)
}

// A3: a list in pages loses the version that it reads, between two pages, twice. The server answers
// its continue token with HTTP 410. The list begins anew, the second time in one piece.
func TestExpiredContinueStartsAgain(t *testing.T) {
	onServers(t, expiredContinueStartsAgain)
}

func expiredContinueStartsAgain(t *testing.T, on server) {
	t.Parallel() // the two servers beside each other
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(on.pods())
	paused, goOn := make(chan struct{}), make(chan struct{})
	page := 0
	hold := func(r *http.Request) {
		if !r.URL.Query().Has("continue") {
			page = 0
		} else if page++; page == 3 {
			paused <- struct{}{}
			<-goOn
		}
	}
	f := w.followPodsTapped(t, &wire{hold: hold}, c.Server.Config(cluster.Agent), "", nil, reflector.WithPageSize(int64(on.pods()/10)))
	for range 2 {
		<-paused
		w.each(200, w.annotate)
		c.Server.Kill()
		c.Etcd.Compact()
		c.Server.Restart()
		goOn <- struct{}{}
	}
	requireSynced(t, f, time.Minute)
	requireWhole(t, f, 10*time.Second)

	expired, begun := 0, 0
	for _, r := range f.sent().log() {
		if r.code == http.StatusGone {
			expired++
		}
		if r.kind == list && !r.next {
			begun++
		}
	}
	require.Equal(t, 2, expired, brief(f.sent().log()))
	require.Equal(t, 3, begun, brief(f.sent().log()))
	require.Equal(t, map[reflector.Class]int{reflector.OK: 1}, f.status().Lists)
	t.Logf("A3: continue tokens: %d expired, %d lists begun, %d completed", expired, begun, lists(f))
}

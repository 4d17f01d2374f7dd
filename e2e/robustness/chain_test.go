package robustness_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver"
)

// TestThreeCachesInARow: readers read a cache of a cache of a cache of the origin.
// Every connection of the row is cut, reset, held back and lost. No cache lists a second time, so
// that etcd's validators ask for every change.
//
// A second silent watch has a reflector list again, since a watch from a version of the future is
// silent too. That is right, but a relist steps over changes. So the API server is read over
// HTTP/1.1: over HTTP/2, a black hole outlasts the watch in it, since the next request goes over
// the same connection until client-go's ping ends that after 45 s. And its caches wait for longer
// than the server's only bookmark in a quiet time, which comes two seconds before the watch's
// timeout of three to six seconds.
func TestThreeCachesInARow(t *testing.T) {
	t.Run("the fake", func(t *testing.T) {
		s := theFake(t, 100_000) // all of the run, however long a busy machine holds a cache up
		s.faults = nil
		judgeRow(t, s)
	})
	t.Run("the API server", func(t *testing.T) {
		s := theAPIServer(t)
		s.faults = nil
		s.readsConfig.NextProtos, s.liveness = []string{"http/1.1"}, 3*time.Second
		judgeRow(t, s)
	})
	t.Run("etcd", func(t *testing.T) {
		c := cluster.Start(t)
		s := behindProxies(t, "http://"+startOurs(t, connectTo(t, c.Etcd.URL())).address)
		s.persisted = followEtcd(t, c.Etcd.URL()).persisted
		judgeRow(t, s)
	})
}

// judgeRow has three caches before a server judged, which must not list a second time.
func judgeRow(t *testing.T, s *server) {
	t.Helper()
	row, links := inARow(t, s)
	defer func() {
		for i, l := range links {
			assert.Equal(t, map[reflector.Class]int{reflector.OK: 1}, l.copying.Status().Lists, "lists of cache %d", i+1)
		}
	}()
	judge(t, row, length(t, 8*time.Second), 150*time.Millisecond)
}

// TestThreeCachesThatRelist: the same, but the origin forgets its history, and caches in the row
// are replaced by empty ones. No validator knows which changes a relist may leave out. But in the
// end every reader holds what the origin has, and none has seen two contents of one version.
func TestThreeCachesThatRelist(t *testing.T) {
	s, _ := inARow(t, theWatchCache(t))
	seed := seedOf(t)
	r := startReaders(t, s.readsConfig, s.liveness)
	s.writes.Delay(5 * time.Millisecond)
	struck := work(t, s, &journal{began: time.Now()}, rand.New(rand.NewPCG(seed, 0)), length(t, 8*time.Second), 150*time.Millisecond)
	pass(time.Second)
	state := map[string]string{}
	for _, p := range s.persisted() {
		apply(state, p.Change)
	}
	r.agree(state)
	r.histories()
	t.Logf("seed %d, %d objects, faults: %v", seed, len(state), struck)
}

// link is a cache of the row, which can be replaced.
type link struct {
	t        *testing.T
	upstream *rest.Config
	liveness time.Duration
	proxy    *netfault.Proxy // before it
	address  string
	copying  *reflector.Reflector[object]
	stop     func()
}

// inARow puts three caches before what a server's readers read.
func inARow(t *testing.T, s *server) (row *server, links []*link) {
	t.Helper()
	before := *s
	row = &before
	for i := range 3 {
		upstream := row.reads
		l := &link{t: t, upstream: row.readsConfig, liveness: s.liveness}
		l.start()
		links = append(links, l)
		t.Cleanup(func() { l.stop() })
		l.proxy = netfault.Listen(t, l.address)
		row.reads = l.proxy
		row.readsConfig = &rest.Config{Host: "http://" + l.proxy.Address(), QPS: -1}
		name := func(fault string) string { return fmt.Sprintf("cache %d %s", i+1, fault) }
		row.faults = append(row.faults,
			fault{name("cut"), upstream.Cut},
			fault{name("reset"), upstream.Reset},
			fault{name("cut in a frame"), func() { upstream.CutAfter(700) }},
			fault{name("held back"), func() { upstream.Pause(); pass(300 * time.Millisecond); upstream.Resume() }},
			fault{name("in a black hole"), upstream.Blackhole},
		)
		if s.bookmark != nil { // this origin forgets, too
			row.faults = append(row.faults, fault{name("replaced"), func() {
				l.stop()
				l.start()
				l.proxy.Switch(l.address)
				l.proxy.Cut()
			}})
		}
	}
	return row, links
}

// start fills a new cache and serves it.
func (l *link) start() {
	l.t.Helper()
	client, err := listwatch.NewRESTClient(rest.CopyConfig(l.upstream), corev1.SchemeGroupVersion)
	require.NoError(l.t, err)
	metadata := listwatch.FromClient[metav1.PartialObjectMetadata](client, "configmaps", listwatch.InNamespace(namespace))
	cache, err := watchcache.NewCache(configMaps,
		watchcache.WithUpstream(watchcache.ServerOf(metadata)), watchcache.WithBookmarkInterval(200*time.Millisecond))
	require.NoError(l.t, err)
	r := reflector.New(listwatch.FromClient[corev1.ConfigMap](client, "configmaps", listwatch.InNamespace(namespace)), cache,
		reflector.WithLiveness(l.liveness), reflector.WithWatchTimeout(3*time.Second))
	handler, err := apiserver.NewServer()
	require.NoError(l.t, err)
	apiserver.ServeCache(handler, cache)
	l.copying = r
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	within, done := context.WithTimeout(ctx, answered)
	defer done()
	require.NoError(l.t, r.WaitSynced(within))
	listener := httptest.NewServer(handler)
	l.address = strings.TrimPrefix(listener.URL, "http://")
	l.stop = sync.OnceFunc(func() {
		handler.Close()
		listener.CloseClientConnections()
		listener.Close()
		cancel()
		running.Wait()
	})
}

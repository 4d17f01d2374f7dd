package robustness_test

import (
	"context"
	"encoding/pem"
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
	"github.com/tributary-go/tributary/e2e/robustness"
	"github.com/tributary-go/tributary/internal/histories"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
)

// TestThreeCachesInARow: readers read a cache of a cache of a cache of the origin.
// Every connection of the row is cut, reset, held back and lost. The third serves HTTP/2. No cache
// lists a second time, so that etcd's validators ask for every change.
//
// A second silent watch has a reflector list again, since a watch from a version of the future is
// silent too. That is right, but a relist steps over changes. So the API server is read over
// HTTP/1.1: over HTTP/2, a black hole outlasts the watch in it, since the next request goes over
// the same connection until client-go's ping ends that after 45 s. And its cache waits for longer
// than a watch lasts, three to six seconds, so that only a black hole is silent: the server's only
// bookmark in a quiet time comes two seconds before the end, or later on a busy machine.
func TestThreeCachesInARow(t *testing.T) {
	t.Run("the fake", func(t *testing.T) {
		s := theFake(t, 100_000) // all of the run, however long a busy machine holds a cache up
		s.faults = nil
		judgeRow(t, s)
	})
	t.Run("the API server", func(t *testing.T) {
		s := theAPIServer(t)
		s.faults = nil
		s.readsConfig.NextProtos, s.liveness = []string{"http/1.1"}, 8*time.Second
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
// are replaced by empty ones. No validator knows which changes a relist may leave out, and etcd's
// judge all else: see [robustness.Run.JudgeRelisting]. In the end every reader holds what the
// origin has, and none has seen two contents of one version.
func TestThreeCachesThatRelist(t *testing.T) {
	s, _ := inARow(t, theWatchCache(t))
	seed := seedOf(t)
	r := startReaders(t, s.readsConfig, s.liveness)
	s.writes.Delay(5 * time.Millisecond)
	struck := work(t, s, &journal{began: time.Now()}, rand.New(rand.NewPCG(seed, 0)), length(t, 8*time.Second), 150*time.Millisecond)
	pass(time.Second)
	run := &robustness.Run{Persisted: s.persisted()}
	state := stateAfter(run.Persisted)
	r.agree(state)
	for _, reader := range r.histories() {
		require.NoError(t, run.CheckRelisting(reader), "seed %d", seed)
		if relisting(reader) {
			run.Readers = append(run.Readers, reader)
		}
	}
	require.NotEmpty(t, run.Readers)
	judgeRelisting(t, run, seed)
	t.Logf("seed %d, %d objects, faults: %v", seed, len(state), struck)
}

// relisting reports whether a reader can be judged if its server lists anew: the states of others
// than a source have no version.
func relisting(reader robustness.Reader) bool { return strings.HasSuffix(reader.Reader, ": source") }

// judgeRelisting has etcd's validators judge each reader. Then it damages what was told, and they
// must name the damage.
func judgeRelisting(t *testing.T, run *robustness.Run, seed uint64) {
	t.Helper()
	quiet(t)
	named := map[string]int{}
	for _, reader := range run.Readers {
		require.NoError(t, run.JudgeRelisting(reader, judging), "%s, seed %d", reader.Reader, seed)
		for _, d := range damages {
			if d.finding == histories.Reliable || d.finding == histories.Resumable {
				continue
			}
			if broken, at := damaged(reader, d.do); at >= 0 {
				require.ErrorContains(t, run.JudgeRelisting(broken, judging), d.theirs, "%s: %s", reader.Reader, d.name)
				named[d.name]++
			}
		}
		if torn, ok := tear(reader); ok {
			require.Error(t, run.JudgeRelisting(torn, judging), "%s: half a state", reader.Reader)
			named["half a state"]++
		}
	}
	require.Len(t, named, 4, "each damage was found: %v", named)
}

// link is a cache of the row, which can be replaced.
type link struct {
	t        *testing.T
	upstream *rest.Config
	liveness time.Duration
	http2    bool            // it serves HTTP/2, over TLS
	proxy    *netfault.Proxy // before it
	address  string
	config   *rest.Config // of its readers, but for the address
	copying  *reflector.Reflector[object]
	stop     func()
}

// inARow puts three caches before what a server's readers read.
func inARow(t *testing.T, s *server) (row *server, links []*link) {
	t.Helper()
	// client-go asks a silent connection of HTTP/2 for a sign of life, after 30 + 15 s by default.
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "2")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	before := *s
	row = &before
	for i := range 3 {
		upstream := row.reads
		l := &link{t: t, upstream: row.readsConfig, liveness: row.liveness, http2: i == 2}
		l.start()
		links = append(links, l)
		t.Cleanup(func() { l.stop() })
		l.proxy = netfault.Listen(t, l.address)
		row.reads = l.proxy
		row.readsConfig = rest.CopyConfig(l.config)
		row.readsConfig.Host += l.proxy.Address()
		row.liveness = 2 * time.Second // a cache of ours sends bookmarks all the time
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
	cache, err := watchcache.NewCache(configMaps.Kind,
		watchcache.WithUpstream(watchcache.ServerOf(metadata)), watchcache.WithBookmarkInterval(200*time.Millisecond))
	require.NoError(l.t, err)
	r := reflector.New(listwatch.FromClient[corev1.ConfigMap](client, "configmaps", listwatch.InNamespace(namespace)), cache,
		reflector.WithLiveness(l.liveness), reflector.WithWatchTimeout(3*time.Second))
	handler, err := apiserver.NewServer()
	require.NoError(l.t, err)
	apiserver.ServeCache(handler, cache, configMaps.View)
	l.copying = r
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	within, done := context.WithTimeout(ctx, answered)
	defer done()
	require.NoError(l.t, r.WaitSynced(within))
	listener := httptest.NewUnstartedServer(handler)
	l.config = &rest.Config{Host: "http://", QPS: -1}
	if l.http2 {
		listener.EnableHTTP2 = true
		listener.StartTLS()
		l.config.Host = "https://"
		l.config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: listener.Certificate().Raw})
	} else {
		listener.Start()
	}
	l.address = listener.Listener.Addr().String()
	l.stop = sync.OnceFunc(func() {
		handler.Close()
		listener.CloseClientConnections()
		listener.Close()
		cancel()
		running.Wait()
	})
}

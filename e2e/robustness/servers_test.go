package robustness_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/e2e/robustness"
	"github.com/tributary-go/tributary/internal/histories"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// server is one that is written to, read and broken. Readers and writers have a proxy each.
type server struct {
	reads, writes             *netfault.Proxy
	readsConfig, writesConfig *rest.Config
	liveness                  time.Duration
	persisted                 func() []robustness.Persisted // all writes so far
	faults                    []fault                       // besides those of the network
	bookmark                  func()                        // nil: the server sends them by itself

	more    func(*readers) // starts readers of what is below the server; or nil
	mend    func()         // waits for the end of what faults have left behind; or nil
	clients []*rest.Config // of writers and the lister; empty: writesConfig
	relists bool           // only the readers of more are judged, since servers list anew
}

// configOf is the configuration of a writer, or of the lister, which is the last one.
func (s *server) configOf(id int) *rest.Config {
	if len(s.clients) == 0 {
		return s.writesConfig
	}
	return s.clients[id]
}

type fault struct {
	name string
	do   func()
}

// network are the faults that every server gets.
func (s *server) network() []fault {
	return []fault{
		{"readers cut", s.reads.Cut},
		{"readers reset", s.reads.Reset},
		{"readers cut in a frame", func() { s.reads.CutAfter(700) }},
		{"readers held back", func() { s.reads.Pause(); pass(300 * time.Millisecond); s.reads.Resume() }},
		{"readers in a black hole", s.reads.Blackhole},
		{"writers cut", s.writes.Cut},
		{"writers cut in an answer", func() { s.writes.CutAfter(100) }},
		{"writers reset", s.writes.Reset},
	}
}

// pass waits for real time to pass, where that is the experiment.
func pass(d time.Duration) { <-time.After(d) }

var configMaps = builtin.Of[object]()

// committed notes writes as a server in this process commits them.
type committed struct {
	mu  sync.Mutex
	all []robustness.Persisted
}

func (c *committed) note(e listwatch.Event[object]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := robustness.Persisted{Change: histories.Change{Type: e.Type, Key: store.KeyOf(e.Object), ResourceVersion: e.ResourceVersion}}
	if e.Type != watch.Deleted {
		p.Content = contentOf(e.Object)
	}
	c.all = append(c.all, p)
}

func (c *committed) persisted() []robustness.Persisted {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]robustness.Persisted{}, c.all...)
}

// behindProxies makes a server of one that speaks plain HTTP.
func behindProxies(t *testing.T, url string) *server {
	t.Helper()
	upstream := strings.TrimPrefix(url, "http://")
	s := &server{reads: netfault.Listen(t, upstream), writes: netfault.Listen(t, upstream), liveness: 2 * time.Second}
	s.readsConfig = &rest.Config{Host: "http://" + s.reads.Address(), QPS: -1}
	s.writesConfig = &rest.Config{Host: "http://" + s.writes.Address(), QPS: -1}
	return s
}

// theFake is listwatchtest, with its own faults.
func theFake(t *testing.T, window int) *server {
	fake := listwatchtest.New(t, configMaps, watchcache.WithWindow(window), watchcache.WithBookmarkInterval(200*time.Millisecond))
	written := &committed{}
	fake.Origin().OnChange(written.note)
	s := behindProxies(t, fake.Server().Listen().Host)
	s.persisted = written.persisted
	s.faults = []fault{
		{"Disconnect", func() { fake.Disconnect() }},
		{"Expire", func() { fake.Expire() }},
		{"Truncate", func() { fake.Truncate() }},
		{"Mute", func() { fake.Mute() }},
		{"Delay", func() { fake.Delay(300 * time.Millisecond) }},
		{"NoWatchList", func() { fake.NoWatchList(); fake.Expire() }},
		{"Throttle", func() { fake.Throttle(time.Second); fake.Disconnect() }},
		{"a create without an answer", func() { fake.Disconnect(listwatchtest.On(listwatchtest.Create)) }},
		{"Stale", func() {
			stale := fake.Stale(listwatchtest.UntilLifted())
			fake.Disconnect()
			pass(time.Second)
			stale.Lift()
		}},
	}
	return s
}

// theWatchCache is the watch cache over HTTP.
func theWatchCache(t *testing.T) *server {
	handler, err := apiserver.NewServer(watchcache.WithWindow(200), watchcache.WithBookmarkInterval(time.Hour))
	require.NoError(t, err)
	origin := apiserver.Serve(handler, configMaps)
	written := &committed{}
	origin.OnChange(written.note)
	listener := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		listener.CloseClientConnections()
		listener.Close()
	})
	s := behindProxies(t, listener.URL)
	s.persisted = written.persisted
	s.bookmark = origin.SendBookmarks
	s.faults = []fault{
		{"compaction", func() { origin.Compact(); s.reads.Cut() }},
		{"expiry", origin.Expire},
	}
	return s
}

// theAPIServer is kube-apiserver on etcd, with a second one that is left behind.
func theAPIServer(t *testing.T) *server {
	c := cluster.Start(t)
	link := netfault.Listen(t, strings.TrimPrefix(c.Etcd.URL(), "http://"))
	second := c.AddServer("http://" + link.Address())
	reads, writes := netfault.Listen(t, c.Server.Address()), netfault.Listen(t, c.Server.Address())
	written := followEtcd(t, c.Etcd.URL())
	s := &server{
		reads: reads, writes: writes, liveness: 2 * time.Second, persisted: written.persisted,
		readsConfig:  c.Server.ConfigVia(reads.Address(), cluster.Admin),
		writesConfig: c.Server.ConfigVia(writes.Address(), cluster.Admin),
	}
	restart := func(meanwhile func()) func() {
		return func() {
			c.Server.Kill()
			meanwhile()
			c.Server.Restart()
		}
	}
	s.faults = []fault{
		{"kill -9", restart(func() {})},
		{"kill -9 and compaction", restart(func() { c.Etcd.Compact() })},
		{"compaction", func() { c.Etcd.Compact(); reads.Cut() }},
		{"failover to a server that is behind", func() {
			link.Pause()
			pass(500 * time.Millisecond)
			reads.Switch(second.Address())
			reads.Cut()
			pass(4 * time.Second)
			link.Resume()
			pass(2 * time.Second)
			reads.Switch(c.Server.Address())
			reads.Cut()
		}},
	}
	return s
}

// registry is where the API server keeps what is written here.
const registry = "/registry/configmaps/"

// followed is etcd's own account of what was written.
type followed struct {
	t      *testing.T
	client *clientv3.Client
	ctx    context.Context

	mu       sync.Mutex
	all      []robustness.Persisted
	complete int64 // the revision up to which all has come
	failed   error
	moved    chan struct{}
}

// followEtcd watches the collection from its first revision, without the API server.
func followEtcd(t *testing.T, endpoints ...string) *followed {
	t.Helper()
	client := connectTo(t, endpoints...)
	ctx, cancel := context.WithCancel(context.Background())
	f := &followed{t: t, client: client, ctx: clientv3.WithRequireLeader(ctx), moved: make(chan struct{}, 1)}
	var running sync.WaitGroup
	running.Go(func() {
		for f.ctx.Err() == nil { // a member without a leader ends the watch
			for answer := range client.Watch(f.ctx, registry+namespace+"/", clientv3.WithPrefix(), clientv3.WithRev(f.last()+1), clientv3.WithProgressNotify()) {
				f.take(answer)
			}
			pass(10 * time.Millisecond)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return f
}

func (f *followed) take(answer clientv3.WatchResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := answer.Err(); err != nil {
		if !errors.Is(err, rpctypes.ErrNoLeader) {
			f.failed = err
		}
		return
	}
	for _, e := range answer.Events {
		p := robustness.Persisted{Change: histories.Change{
			Key: strings.TrimPrefix(string(e.Kv.Key), registry), ResourceVersion: strconv.FormatInt(e.Kv.ModRevision, 10),
		}}
		switch {
		case e.Type == clientv3.EventTypeDelete:
			p.Type = watch.Deleted
		case e.IsCreate():
			p.Type = watch.Added
		default:
			p.Type = watch.Modified
		}
		if p.Type != watch.Deleted {
			obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(e.Kv.Value, nil, nil)
			if err != nil {
				f.failed = err
				return
			}
			p.Content = contentOf(obj.(object))
		}
		f.all = append(f.all, p)
		f.complete = e.Kv.ModRevision
	}
	if answer.IsProgressNotify() { // another answer's revision may be newer than its events
		f.complete = max(f.complete, answer.Header.Revision)
	}
	select {
	case f.moved <- struct{}{}:
	default:
	}
}

// last is the revision of the last write that has come; 0 before the first.
func (f *followed) last() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		return 0
	}
	return int64(number(f.all[len(f.all)-1].ResourceVersion))
}

// persisted waits for what etcd has now.
func (f *followed) persisted() []robustness.Persisted {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx, 30*time.Second)
	defer cancel()
	now, err := f.client.Get(ctx, registry, clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(f.t, err)
	for {
		f.mu.Lock()
		all, complete, failed := append([]robustness.Persisted{}, f.all...), f.complete, f.failed
		f.mu.Unlock()
		require.NoError(f.t, failed)
		if complete >= now.Header.Revision {
			return all
		}
		_ = f.client.RequestProgress(f.ctx) // fails between two watches
		select {
		case <-f.moved:
		case <-time.After(100 * time.Millisecond):
			require.NoError(f.t, ctx.Err(), "etcd did not tell all")
		}
	}
}

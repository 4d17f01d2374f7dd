package robustness_test

import (
	"context"
	"math/rand/v2"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/etcd/origin"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
)

// TestServersOnOneEtcd: readers and writers move between two servers of ours on one etcd, while the
// servers are ended and cut off, and the etcd is killed, compacted and stands still.
func TestServersOnOneEtcd(t *testing.T) {
	s := newSharedEtcd(t)
	s.persisted = followEtcd(t, s.control.Etcd.URL()).persisted
	s.faults = append(s.faults,
		fault{"etcd is killed", func() { s.control.Etcd.Kill(); s.control.Etcd.Start() }},
		fault{"compaction", func() { s.forgiving(t) }},
		fault{"compaction, and readers move", func() { s.forgiving(t); s.faults[0].do() }},
	)
	judge(t, s.server, length(t, 20*time.Second), 300*time.Millisecond)
}

// TestServersThatRelist: the same, but the etcd forgets its history before the servers are back.
// They list anew, each at another time, and the readers move between them. No validator knows which
// changes a relist may leave out. But in the end every reader holds what etcd has, and none has
// seen two contents of one version.
func TestServersThatRelist(t *testing.T) {
	s := newSharedEtcd(t)
	s.faults = append(s.faults, fault{"etcd is killed, and its history is gone", func() {
		s.control.Etcd.Kill()
		s.control.Etcd.Start()
		s.control.Etcd.Compact()
	}})
	seed := seedOf(t)
	r := startReaders(t, s.readsConfig, s.liveness)
	s.writes.Delay(5 * time.Millisecond)
	struck := work(t, s.server, &journal{began: time.Now()}, rand.New(rand.NewPCG(seed, 0)), length(t, 20*time.Second), 200*time.Millisecond)
	pass(time.Second)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.control.Etcd.URL()}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	answer, err := client.Get(t.Context(), registry+namespace+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	state := map[string]string{}
	for _, kv := range answer.Kvs {
		state[strings.TrimPrefix(string(kv.Key), registry)] = strconv.FormatInt(kv.ModRevision, 10)
	}
	r.agree(state)
	r.histories()
	t.Logf("seed %d, %d objects, faults: %v", seed, len(state), struck)
}

// ours is one server of ours, with a connection and a cache of its own.
type ours struct {
	address string
	content *origin.Collection[object]
	stop    func()
}

// startOurs serves the collection in etcd; it is filled when it returns.
func startOurs(t *testing.T, client *clientv3.Client, options ...etcd.Option) *ours {
	t.Helper()
	c, err := origin.New(etcd.New[corev1.ConfigMap](client, registry, options...), configMaps.Kind, configMaps.Rules,
		watchcache.WithBookmarkInterval(200*time.Millisecond))
	require.NoError(t, err)
	handler, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.ServeCollection(handler, c.Collection, configMaps.View)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	within, done := context.WithTimeout(ctx, answered)
	defer done()
	require.NoError(t, c.WaitSynced(within))
	listener := httptest.NewServer(handler)
	o := &ours{address: strings.TrimPrefix(listener.URL, "http://"), content: c}
	o.stop = sync.OnceFunc(func() {
		handler.Close()
		listener.CloseClientConnections()
		listener.Close()
		cancel()
		running.Wait()
	})
	t.Cleanup(o.stop)
	return o
}

// sharedEtcd is two servers of ours on the etcd of a control plane, whose API server is idle.
type sharedEtcd struct {
	*server
	control *cluster.Cluster
	servers []*ours
}

func newSharedEtcd(t *testing.T) *sharedEtcd {
	c := cluster.Start(t)
	s := &sharedEtcd{control: c, servers: []*ours{startOurs(t, connectTo(t, c.Etcd.URL())), startOurs(t, connectTo(t, c.Etcd.URL()))}}
	s.server = behindProxies(t, "http://"+s.servers[0].address)
	s.faults = append(moving(s.server, s.servers, func(int) *ours { return startOurs(t, connectTo(t, c.Etcd.URL())) }), fault{
		"etcd stands still", func() { c.Etcd.Pause(); pass(700 * time.Millisecond); c.Etcd.Resume() },
	})
	return s
}

// moving are the faults of several servers behind one address for readers, and one for writers.
func moving(s *server, servers []*ours, start func(n int) *ours) []fault {
	reads, writes := 0, 0 // the servers that are in use
	return []fault{
		{"readers move to the other server", func() {
			reads = (reads + 1) % len(servers)
			s.reads.Switch(servers[reads].address)
			s.reads.Cut()
		}},
		{"writers move to the other server", func() {
			writes = (writes + 1) % len(servers)
			s.writes.Switch(servers[writes].address)
			s.writes.Cut()
		}},
		{"a new server takes the place of one", func() {
			servers[reads].stop()
			servers[reads] = start(reads)
			s.reads.Switch(servers[reads].address)
			s.writes.Switch(servers[writes].address)
		}},
	}
}

// forgiving compacts when the judge and the servers have all that was written: no validator allows
// for a relist.
func (s *sharedEtcd) forgiving(t *testing.T) {
	written := s.persisted()
	last := number(written[len(written)-1].ResourceVersion)
	for _, one := range s.servers {
		require.Eventually(t, func() bool { return number(one.content.Status().ResourceVersion) >= last }, answered, 5*time.Millisecond)
	}
	s.control.Etcd.Compact()
}

package robustness_test

import (
	"context"
	"net/http/httptest"
	"os"
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
	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver"
)

// TestServersOnOneEtcd: readers and writers move between two servers of ours on one etcd, while the
// servers are ended, cut off and compacted, and the etcd stands still.
func TestServersOnOneEtcd(t *testing.T) {
	judge(t, theSharedEtcd(t), length(t, 20*time.Second), 300*time.Millisecond)
}

// ours is one server of ours, with a connection and a cache of its own.
type ours struct {
	address string
	stop    func()
}

// startOurs serves the collection in etcd; it is filled when it returns.
func startOurs(t *testing.T, endpoint string) *ours {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	require.NoError(t, err)
	c, err := etcd.NewCollection(etcd.New[corev1.ConfigMap](client, registry), configMaps, watchcache.WithBookmarkInterval(200*time.Millisecond))
	require.NoError(t, err)
	handler, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.ServeCollection(handler, c.Collection)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	within, done := context.WithTimeout(ctx, answered)
	defer done()
	require.NoError(t, c.WaitSynced(within))
	listener := httptest.NewServer(handler)
	o := &ours{address: strings.TrimPrefix(listener.URL, "http://")}
	o.stop = sync.OnceFunc(func() {
		handler.Close()
		listener.CloseClientConnections()
		listener.Close()
		cancel()
		running.Wait()
		_ = client.Close()
	})
	t.Cleanup(o.stop)
	return o
}

// theSharedEtcd is two servers of ours on the etcd of a control plane, whose API server is idle.
func theSharedEtcd(t *testing.T) *server {
	c := cluster.Start(t)
	servers := []*ours{startOurs(t, c.Etcd.URL()), startOurs(t, c.Etcd.URL())}
	s := behindProxies(t, "http://"+servers[0].address)
	s.persisted = followEtcd(t, c.Etcd.URL()).persisted
	compact := func() {
		s.persisted() // a judge that comes back from a killed etcd must not lose what it follows
		c.Etcd.Compact()
	}
	reads, writes := 0, 0 // the servers that are in use
	s.faults = []fault{
		{"readers move to the other server", func() {
			reads = 1 - reads
			s.reads.Switch(servers[reads].address)
			s.reads.Cut()
		}},
		{"writers move to the other server", func() {
			writes = 1 - writes
			s.writes.Switch(servers[writes].address)
			s.writes.Cut()
		}},
		{"a new server takes the place of one", func() {
			servers[reads].stop()
			servers[reads] = startOurs(t, c.Etcd.URL())
			s.reads.Switch(servers[reads].address)
			s.writes.Switch(servers[writes].address)
		}},
		{"compaction", compact},
		{"compaction, and readers move", func() {
			compact()
			reads = 1 - reads
			s.reads.Switch(servers[reads].address)
			s.reads.Cut()
		}},
		{"etcd stands still", func() { c.Etcd.Pause(); pass(700 * time.Millisecond); c.Etcd.Resume() }},
	}
	if os.Getenv("TRIBUTARY_ROBUSTNESS_KILL") != "" {
		// Not in CI: on a busy machine a killed etcd was seen to give revisions twice, which the
		// judge of contents finds. The cause is not known yet.
		s.faults = append(s.faults, fault{"etcd is killed", func() { c.Etcd.Kill(); c.Etcd.Start() }})
	}
	return s
}

package robustness_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/e2e/robustness"
)

// TestRelaysInARow: readers read the API server through one, two and three relays in a row, each a
// process with a journal. Half of the writers, and the client that makes consistent lists, are
// clients of the last relay. Each connection of the row is cut, reset, held back and lost, relays
// are killed and stopped, the API server is stopped, and etcd is compacted. A relay never lists
// again, so that etcd's validators ask for every change.
func TestRelaysInARow(t *testing.T) {
	binary, err := cluster.BuildTributary(t.TempDir())
	require.NoError(t, err)
	for n := range 3 {
		t.Run(fmt.Sprint(1+n), func(t *testing.T) {
			audit := cluster.NewAudit(t)
			s, _ := relaysInARow(t, cluster.Start(t, audit.Flags()...), binary, 1+n, true)
			defer func() {
				asked := audit.Collected(cluster.AgentUser, "configmaps")
				assert.Len(t, asked, 1, "collections that the relays have read of the API server")
			}()
			judge(t, s, length(t, 8*time.Second), 150*time.Millisecond)
		})
	}
}

// TestRelaysThatRelist: the same with relays that have no journal, before an API server that is
// killed, so that they list anew, and step over changes. No validator knows which; etcd's judge all
// else: see [robustness.Run.JudgeRelisting]. The writers and the consistent lists are judged in any
// case. In the end every reader holds what etcd has, and none has seen two contents of one version.
func TestRelaysThatRelist(t *testing.T) {
	binary, err := cluster.BuildTributary(t.TempDir())
	require.NoError(t, err)
	c := cluster.Start(t)
	s, restarted := relaysInARow(t, c, binary, 2, false)
	s.faults = append(s.faults,
		fault{"the API server: kill -9", func() { c.Server.Kill(); c.Server.Restart() }},
		fault{"the API server: kill -9 and compaction", func() { c.Server.Kill(); c.Etcd.Compact(); c.Server.Restart() }},
		fault{"all: kill -9", func() {
			c.Server.Kill()
			for _, r := range restarted {
				r.Kill()
			}
			c.Server.Restart()
			for _, r := range restarted {
				r.Restart()
			}
		}},
	)
	seed := seedOf(t)
	r := startReaders(t, s.readsConfig, s.liveness)
	s.writes.Delay(5 * time.Millisecond)
	log := &journal{began: time.Now()}
	struck := work(t, s, log, rand.New(rand.NewPCG(seed, 0)), length(t, 20*time.Second), 300*time.Millisecond)
	pass(time.Second)
	run := &robustness.Run{Persisted: s.persisted(), Operations: log.operations}
	state := stateAfter(run.Persisted)
	s.reads.Cut()
	r.agree(state)
	histories := r.histories()
	require.NoError(t, run.Judge(judging), "writers and lists, seed %d", seed)
	for _, reader := range histories {
		require.NoError(t, run.CheckRelisting(reader), "%s, seed %d", reader.Reader, seed)
		if relisting(reader) {
			run.Readers = append(run.Readers, reader)
		}
	}
	require.NotEmpty(t, run.Readers)
	judgeRelisting(t, run, seed)
	t.Logf("seed %d, %d operations, %d objects, faults: %v", seed, len(run.Operations), len(state), struck)
}

// relaysInARow puts relays before an API server. The first one is next to the server.
func relaysInARow(t *testing.T, c *cluster.Cluster, binary string, n int, journals bool) (s *server, relays []*cluster.Relay) {
	t.Helper()
	// A silent connection of HTTP/2 is asked for a sign of life, by the relays too.
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "2")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "1")
	c.AllowRelay()
	s = &server{writes: netfault.Listen(t, c.Server.Address()), liveness: 2 * time.Second}
	address := c.Server.Address()
	for i := range n {
		link := netfault.Listen(t, address)
		flags := []string{}
		if journals {
			flags = append(flags, "--data="+t.TempDir())
		}
		r := c.StartRelay(binary, c.Server.ConfigVia(link.Address(), cluster.Agent), flags...)
		relays = append(relays, r)
		address = r.Address()
		name := func(what string) string { return fmt.Sprintf("relay %d: %s", i+1, what) }
		s.faults = append(s.faults,
			fault{name("cut off"), link.Cut},
			fault{name("connections reset"), link.Reset},
			fault{name("cut off in a frame"), func() { link.CutAfter(700) }},
			fault{name("held back"), func() { link.Pause(); pass(300 * time.Millisecond); link.Resume() }},
			fault{name("in a black hole"), link.Blackhole},
			fault{name("kill -9"), func() { r.Kill(); r.Restart() }},
			fault{name("stopped for a second"), func() { r.Pause(); pass(time.Second); r.Resume() }},
		)
	}
	s.faults = append(s.faults,
		fault{"the API server: stopped for a second", func() { c.Server.Pause(); pass(time.Second); c.Server.Resume() }},
		fault{"compaction", func() { c.Etcd.Compact() }},
	)
	s.reads = netfault.Listen(t, address)
	s.readsConfig = c.Server.ConfigVia(s.reads.Address(), cluster.Admin)
	s.writesConfig = c.Server.ConfigVia(s.writes.Address(), cluster.Admin)
	s.clients = []*rest.Config{s.writesConfig, s.writesConfig, s.readsConfig, s.readsConfig, s.readsConfig}
	s.persisted = followEtcd(t, c.Etcd.URL()).persisted
	return s, relays
}

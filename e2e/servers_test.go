package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/e2e/cluster"
)

// servers are the programs that answer as the API server: each test of [onServers] runs on all.
var servers = []server{
	{name: "kube-apiserver", start: cluster.Start},
	{name: "tributary", short: !full, start: func(t testing.TB, _ ...string) *cluster.Cluster {
		t.Helper()
		if testing.Short() {
			t.Skip("starts a control plane, and may have to build it: not under -short")
		}
		binary, err := tributary()
		require.NoError(t, err)
		return cluster.StartTributary(t, binary)
	}},
}

type server struct {
	name string
	// start starts one on an etcd of its own; the flags are for kube-apiserver.
	start func(t testing.TB, flags ...string) *cluster.Cluster
	short bool
}

// size is how much of something a test needs: the reader's part is shown on kube-apiserver at full
// size, and less is enough to show a server's part.
func (s server) size(whole, short int) int {
	if s.short {
		return short
	}
	return whole
}

// pods is the size of a large collection.
func (s server) pods() int { return s.size(manyPods, 1000) }

// onServers runs a test on each of the servers.
func onServers(t *testing.T, test func(*testing.T, server)) {
	t.Helper()
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) { test(t, s) })
	}
}

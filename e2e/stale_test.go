package e2e_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/sources"
)

// Two API servers on one etcd, and the link of the second one stalls. Then pods are deleted and
// made, an agent with a checkpoint of the newest state starts on the second server, and is told
// nothing that goes behind its checkpoint: no REMOVE of a running pod, no ADD of a deleted one.
// Nothing is synced or safe to prune before the link is back.
func TestAgentStartsOnStaleServer(t *testing.T) {
	t.Parallel()
	onServers(t, agentStartsOnStaleServer)
}

func agentStartsOnStaleServer(t *testing.T, on server) {
	t.Parallel()
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(2 * nodes) // two of each node
	link := netfault.Listen(t, strings.TrimPrefix(c.Etcd.URL(), "http://"))
	second := c.AddServer("http://" + link.Address())
	link.Pause()

	node, folder := nodeName(1), t.TempDir()
	require.NoError(t, w.client.CoreV1().Pods("default").Delete(t.Context(), podName(1), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	running, err := w.mark(t.Context(), node)
	require.NoError(t, err)
	running = strings.TrimPrefix(running, "default/")
	first := runAgent(t, c.Server, node, folder)
	first.until(t, func() bool { return first.s.SafeToPrune(sources.APISource) })
	first.stop()
	require.Equal(t, map[string]bool{podName(1 + nodes): true, running: true}, first.pods)

	stale := runAgent(t, second, node, folder)
	stale.until(t, func() bool { return len(stale.pods) == 2 })
	// The watch list is given up after 10 s, and the list that follows is not answered.
	began := time.Now()
	ended := time.After(time.Duration(on.size(40, 15)) * time.Second)
	for open := true; open; {
		select {
		case update := <-stale.s.Updates():
			stale.take(update)
			require.True(t, update.Restored, "%s", update.Op)
		case <-ended:
			open = false
		}
		require.Equal(t, first.pods, stale.pods)
		require.False(t, stale.s.SafeToPrune(sources.APISource))
		require.False(t, closed(stale.s.Synced()))
	}
	status := stale.s.Status()[0]
	require.True(t, status.Restored)
	require.NotEmpty(t, status.Problems)
	t.Logf("on the stale server for %s: %v, %v", time.Since(began).Round(time.Second), stale.told, status.Problems)

	link.Resume()
	resumed := time.Now()
	stale.until(t, func() bool { return stale.s.SafeToPrune(sources.APISource) })
	require.Equal(t, first.pods, stale.pods)
	require.NotContains(t, stale.told, sources.Remove)
	require.True(t, closed(stale.s.Synced()))
	t.Logf("safe to prune %s after the link was back: %v", time.Since(resumed).Round(10*time.Millisecond), stale.told)
}

// agent is a node agent that holds what it is told.
type agent struct {
	s    *sources.Sources
	pods map[string]bool
	told []sources.Op
	stop func()
}

func runAgent(t *testing.T, server *cluster.Server, node, checkpoints string) *agent {
	t.Helper()
	client, err := kubernetes.NewForConfig(server.Config(cluster.Agent))
	require.NoError(t, err)
	return startAgent(t, sources.New(node, sources.APIServer(client.CoreV1().RESTClient()).WithoutNode(), sources.Checkpoint(checkpoints)))
}

// startAgent runs an agent on sources.
func startAgent(t *testing.T, s *sources.Sources) *agent {
	t.Helper()
	a := &agent{s: s, pods: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.s.Run(ctx) }()
	a.stop = func() {
		cancel()
		for range a.s.Updates() { // what is not read must not keep Run
			continue
		}
		<-ended
		ended <- nil
	}
	t.Cleanup(a.stop)
	return a
}

func (a *agent) take(update sources.PodUpdate) {
	a.told = append(a.told, update.Op)
	for _, pod := range update.Pods {
		if update.Op == sources.Remove {
			delete(a.pods, pod.Name)
			continue
		}
		a.pods[pod.Name] = true
	}
}

// until reads updates until something holds.
func (a *agent) until(t *testing.T, holds func() bool) {
	t.Helper()
	limit := time.After(3 * time.Minute)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case update := <-a.s.Updates():
			a.take(update)
		case <-ticker.C:
		case <-limit:
			require.Fail(t, "not in time", "%+v", a.s.Status())
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

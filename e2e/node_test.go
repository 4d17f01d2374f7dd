package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
)

// An agent that was given the name of no Node is told no pods, and says so: it is not ready, and
// nothing is safe to prune until the Node registers.
func TestAWrongNodeName(t *testing.T) {
	t.Parallel()
	onServers(t, aWrongNodeName)
}

func aWrongNodeName(t *testing.T, on server) {
	t.Parallel()
	w := newWorld(t, on.start(t))
	w.permit("node-of-the-agent", cluster.AgentUser, rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}})
	a := agentOn(t, w, "node-typo")
	a.until(t, func() bool { return closed(a.s.Synced()) })
	require.ErrorContains(t, a.s.Ready(time.Minute), `the API server has no Node "node-typo"`)
	require.Equal(t, reflector.NotFound, a.s.Status()[0].Verdict(0).Class)
	require.False(t, a.s.SafeToPrune(sources.APISource))
	require.Empty(t, a.pods)

	_, err := w.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-typo"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	registered := time.Now()
	a.until(t, func() bool { return a.s.SafeToPrune(sources.APISource) })
	require.NoError(t, a.s.Ready(time.Minute))
	require.Empty(t, a.s.Status()[0].Problems)
	t.Logf("safe to prune %s after the Node has registered", time.Since(registered).Round(time.Millisecond))
}

// Without the right to get nodes, an agent goes on, and Status says that the Node is not known.
func TestAnAgentWithoutTheRightToItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cluster.Start(t))
	a := agentOn(t, w, "node-typo")
	a.until(t, func() bool { return a.s.SafeToPrune(sources.APISource) })
	require.NoError(t, a.s.Ready(time.Minute))
	require.Equal(t, `watch; whether the Node "node-typo" exists is not known: the account may not get nodes`, a.s.Status()[0].Mode)
}

// agentOn runs an agent with the rights of the user Agent.
func agentOn(t *testing.T, w *world, node string) *agent {
	t.Helper()
	client, err := kubernetes.NewForConfig(w.cluster.Server.Config(cluster.Agent))
	require.NoError(t, err)
	return startAgent(t, sources.New(node, sources.APIServer(client.CoreV1().RESTClient())))
}

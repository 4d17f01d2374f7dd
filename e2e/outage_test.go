package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/sources"
)

// TestNothingIsSafeToPruneWhileAnAgentCatchesUp: 30 pods are bound to a node while its agent cannot
// reach the server, and are told over a slow way after that. An agent that took the first event for
// the end of the outage would stop what it has not been told of yet.
func TestNothingIsSafeToPruneWhileAnAgentCatchesUp(t *testing.T) {
	t.Parallel()
	onServers(t, nothingIsSafeToPruneWhileAnAgentCatchesUp)
}

func nothingIsSafeToPruneWhileAnAgentCatchesUp(t *testing.T, on server) {
	t.Parallel()
	c := on.start(t)
	w := newWorld(t, c)
	proxy := netfault.Listen(t, c.Server.Address())
	client, err := kubernetes.NewForConfig(c.Server.ConfigVia(proxy.Address(), cluster.Agent))
	require.NoError(t, err)
	a := startAgent(t, sources.New(nodeName(1), sources.APIServer(client.CoreV1().RESTClient()).WithoutNode()))
	safe := func() bool { return a.s.SafeToPrune(sources.APISource) }
	a.until(t, safe)
	for outage := range 3 {
		proxy.Switch("127.0.0.1:1")
		proxy.Reset()
		for i := range 30 {
			pod := newPod(fmt.Sprintf("bound-%d-%d", outage, i), nodeName(1))
			_, err := w.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		bound := 30 * (outage + 1)
		proxy.Throttle(30_000)
		proxy.Switch(c.Server.Address())
		back, halfway := time.Now(), 0
		a.until(t, func() bool {
			if missing := bound - len(a.pods); missing > 0 && missing < 30 {
				halfway++
			}
			if !safe() {
				return false
			}
			require.Len(t, a.pods, bound)
			return true
		})
		t.Logf("outage %d: safe to prune %s after it, with all %d pods; looked at %d times halfway", outage, time.Since(back).Round(time.Millisecond), bound, halfway)
		require.Positive(t, halfway)
		proxy.Throttle(0)
	}
}

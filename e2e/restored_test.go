package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/reflector"
)

// etcd is restored from a backup: what was written since has never been, versions begin anew below
// those that the copies hold, and few writes follow. Each copy is equal to the server again within
// the liveness period, which has its default.
func TestRestoredEtcd(t *testing.T) {
	t.Parallel()
	const liveness = 90 * time.Second
	c := cluster.Start(t)
	w := newWorld(t, c)
	w.fill(nodes)
	c.Server.Kill()
	backup := c.Etcd.Backup()
	c.Server.Restart()
	for i := range 500 { // versions that the restored server does not reach soon
		require.NoError(t, w.annotate(t.Context(), i%nodes))
	}
	require.NoError(t, w.client.CoreV1().Pods("default").Delete(t.Context(), podName(1), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	copies := []follower{
		w.followPods(t, c.Server.Config(cluster.Agent), "", nil),
		w.followPods(t, c.Server.Config(cluster.Agent), nodeName(1), nil),
		w.followPods(t, c.Server.Config(cluster.Agent), nodeName(2), nil, reflector.WithPageSize(100)),
	}
	for _, f := range copies {
		requireSynced(t, f, 30*time.Second)
		requireWhole(t, f, 10*time.Second)
	}
	held := copies[0].version()

	c.Server.Kill()
	c.Etcd.Restore(backup)
	ready := c.Server.Restart()
	for i := range 5 {
		require.NoError(t, w.annotate(t.Context(), i))
	}
	for _, f := range copies {
		require.Eventually(t, func() bool { return older(f.version(), held) && f.difference(t.Context()) == nil }, liveness, 20*time.Millisecond,
			"%s: %s%s", f.name(), f.status(), brief(f.sent().since(ready)))
		t.Logf("%s: equal to the restored server %s after it was ready, lists %v", f.name(), time.Since(ready).Round(10*time.Millisecond), f.status().Lists)
		require.Eventually(t, func() bool { return f.status().Err == nil }, liveness, 20*time.Millisecond, "%s", f.status())
		require.Equal(t, 1, f.status().Lists[reflector.WentBack]+f.status().Lists[reflector.Expired]+f.status().Lists[reflector.TooLarge], "%v", f.status().Lists)
	}
	w.freshness(t, time.Now(), 10*time.Second, await(copies[0], nodeName(1)), await(copies[1], nodeName(1)), await(copies[2], nodeName(2)))
}

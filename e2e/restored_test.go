package e2e_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
)

// etcd is restored from a backup: what was written since has never been, versions begin anew below
// those that the copies hold, and few writes follow. Each copy is equal to the server again within
// the liveness period, which has its default.
func TestRestoredEtcd(t *testing.T) {
	t.Parallel()
	onServers(t, restoredEtcd)
}

func restoredEtcd(t *testing.T, on server) {
	t.Parallel()
	const liveness = 90 * time.Second
	c := on.start(t)
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

// etcd is restored from a backup, and others write until it has passed the copy's version before
// the client comes back. Its watch goes on in the new history without a sign, and no client can
// notice that. A verification names each object that differs, and the next relist heals it.
func TestRestoredEtcdThatHasPassedTheCopy(t *testing.T) {
	t.Parallel()
	onServers(t, restoredEtcdThatHasPassedTheCopy)
}

func restoredEtcdThatHasPassedTheCopy(t *testing.T, on server) {
	t.Parallel()
	const pods = 20
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(pods)
	c.Server.Kill()
	backup := c.Etcd.Backup()
	c.Server.Restart()

	proxy := netfault.Listen(t, c.Server.Address())
	client, err := kubernetes.NewForConfig(c.Server.ConfigVia(proxy.Address(), cluster.Agent))
	require.NoError(t, err)
	reports := make(chan informer.Drift, 1000)
	copied := informer.New(listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods"),
		informer.WithVerification(2*time.Second, func(d informer.Drift, err error) {
			if err == nil { // the client cannot ask while it is away
				reports <- d
			}
		}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- copied.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	require.NoError(t, copied.WaitSynced(ctx))

	// The backup has other states of pods 1 and 2, still has pod 3, and lacks the pod "later".
	inDefault := w.client.CoreV1().Pods("default")
	require.NoError(t, w.annotate(ctx, 1))
	require.NoError(t, w.annotate(ctx, 2))
	require.NoError(t, inDefault.Delete(ctx, podName(3), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	last, err := inDefault.Create(ctx, newPod("later", nodeName(4)), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, copied.WaitForResourceVersion(ctx, last.ResourceVersion))

	proxy.Switch("127.0.0.1:1")
	proxy.Reset()
	c.Server.Kill()
	c.Etcd.Restore(backup)
	c.Server.Restart()
	held := copied.Snapshot().ResourceVersion()
	for i := 5; ; i = 5 + (i+1)%10 { // pods that both histories have
		pod, err := inDefault.Patch(ctx, podName(i), mergePatch, roundPatch(rand.Int()), metav1.PatchOptions{})
		require.NoError(t, err)
		if older(held, pod.ResourceVersion) {
			break
		}
	}
	for len(reports) > 0 {
		<-reports
	}
	listed := copied.Status().Lists
	proxy.Switch(c.Server.Address())
	newest, err := inDefault.Patch(ctx, podName(0), mergePatch, roundPatch(rand.Int()), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, copied.WaitForResourceVersion(ctx, newest.ResourceVersion))
	require.Equal(t, listed, copied.Status().Lists, "the watch goes on, and nothing shows")

	key := func(i int) string { return "default/" + podName(i) }
	var drift informer.Drift
	verified := func(holds func(informer.Drift) bool) func() bool {
		return func() bool {
			if w.annotate(ctx, 0) != nil { // an event moves the copy up to a verification's version
				return false
			}
			select {
			case drift = <-reports:
				return holds(drift)
			default:
				return false
			}
		}
	}
	require.Eventually(t, verified(func(d informer.Drift) bool { return d.Count > 0 }), time.Minute, 100*time.Millisecond)
	var found []string
	for _, d := range drift.Differences {
		found = append(found, d.Key)
	}
	t.Logf("%d of %d differ: %v", drift.Count, drift.Objects, drift.Differences)
	require.Subset(t, found, []string{key(1), key(2), key(3), "default/later"})
	require.NotContains(t, found, key(0), "written since")
	require.NotContains(t, found, key(4), "never written")
	require.Equal(t, drift.Count, copied.Status().Drift.Count)

	w.advance()
	c.Server.Kill()
	c.Etcd.Compact()
	c.Server.Restart()
	require.Eventually(t, verified(func(d informer.Drift) bool { return d.Count == 0 }), time.Minute, 100*time.Millisecond)
	_, there := copied.Snapshot().Get(key(3))
	require.True(t, there)
	_, there = copied.Snapshot().Get("default/later")
	require.False(t, there)
}

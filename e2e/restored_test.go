package e2e_test

import (
	"context"
	"iter"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store/packed"
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
	unions := map[string]*informer.Union[*corev1.Pod]{
		"a union":        unionOfNodes(t, c.Server.Config(cluster.Agent)),
		"a packed union": unionOfNodes(t, c.Server.Config(cluster.Agent), informer.WithStore(packed.New[corev1.Pod])),
	}

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
	for name, union := range unions {
		require.Eventually(t, func() bool {
			return union.Ready(3*time.Minute) == nil && maps.Equal(states(union.Snapshot().All()), w.ofNodes(t, 1, 2))
		}, liveness, 100*time.Millisecond, "%s: %s", name, union.Status())
		t.Logf("%s: equal to the restored server %s after it was ready", name, time.Since(ready).Round(10*time.Millisecond))
	}
	w.freshness(t, time.Now(), 10*time.Second, await(copies[0], nodeName(1)), await(copies[1], nodeName(1)), await(copies[2], nodeName(2)))
}

// unionOfNodes is the pods of two nodes, each followed by a member.
func unionOfNodes(t *testing.T, config *rest.Config, options ...informer.Option) *informer.Union[*corev1.Pod] {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	union := informer.NewUnion[*corev1.Pod](options...)
	for _, node := range []string{nodeName(1), nodeName(2)} {
		_, err := union.Add(node, listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods", onNode(node, nil)...))
		require.NoError(t, err)
	}
	return runInformer(t, union)
}

// states is the UID and the version of each pod, by name.
func states(all iter.Seq2[string, *corev1.Pod]) map[string]string {
	found := map[string]string{}
	for _, pod := range all {
		found[pod.Name] = string(pod.UID) + "@" + pod.ResourceVersion
	}
	return found
}

// ofNodes is what the server has of some nodes.
func (w *world) ofNodes(t *testing.T, nodes ...int) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, node := range nodes {
		list, err := w.client.CoreV1().Pods("").List(t.Context(), nodeOptions(nodeName(node)))
		require.NoError(t, err)
		for _, pod := range list.Items {
			found[pod.Name] = string(pod.UID) + "@" + pod.ResourceVersion
		}
	}
	return found
}

// etcd is restored from a backup, and others write until it has passed the copy's version before
// the client comes back. Its watch goes on in the new history without a sign. The comparison that
// follows each interruption finds that, and so does a verification: both copies say that they are
// not right, and a list replaces them.
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
	through := c.Server.ConfigVia(proxy.Address(), cluster.Agent)
	probed := followPassed(t, through)
	reports := make(chan informer.Drift, 1000)
	verified := followPassed(t, through,
		// Its first probe comes after minutes.
		informer.WithReflector(reflector.WithLiveness(time.Hour), reflector.WithProof(time.Hour)),
		informer.WithVerification(time.Second, func(d informer.Drift, err error) {
			if err == nil { // the client cannot ask while it is away
				reports <- d
			}
		}))
	copies := []*informer.Informer[*corev1.Pod]{probed, verified}

	// The backup has other states of most pods, still has pod 3, and lacks the pod "later".
	ctx, inDefault := t.Context(), w.client.CoreV1().Pods("default")
	const rewritten = 15
	w.each(rewritten, w.annotate)
	require.NoError(t, inDefault.Delete(ctx, podName(3), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	last, err := inDefault.Create(ctx, newPod("later", nodeName(4)), metav1.CreateOptions{})
	require.NoError(t, err)
	for _, copied := range copies {
		require.NoError(t, copied.WaitForResourceVersion(ctx, last.ResourceVersion))
	}

	proxy.Switch("127.0.0.1:1")
	proxy.Reset()
	c.Server.Kill()
	c.Etcd.Restore(backup)
	c.Server.Restart()
	held := probed.Snapshot().ResourceVersion()
	for !older(held, w.newest(t, rewritten)) { // what both histories have
		continue
	}
	for len(reports) > 0 {
		<-reports
	}
	proxy.Switch(c.Server.Address())
	back := time.Now()

	key := func(i int) string { return "default/" + podName(i) }
	whole := func(copied *informer.Informer[*corev1.Pod]) func() bool {
		return func() bool {
			_ = w.annotate(ctx, 0) // an event moves the copy up to the version of a proof
			state := copied.Snapshot()
			_, third := state.Get(key(3))
			_, later := state.Get("default/later")
			return third && !later && state.Len() == pods && copied.Ready(time.Minute) == nil
		}
	}
	require.Eventually(t, whole(verified), time.Minute, 100*time.Millisecond, "%s", verified.Status())
	var drift informer.Drift
	for drift.Count == 0 {
		select {
		case drift = <-reports:
		case <-time.After(10 * time.Second):
			require.Fail(t, "no verification has found it", "%v", verified.Status().Lists)
		}
	}
	var found []string
	for _, d := range drift.Differences {
		found = append(found, d.Key)
	}
	t.Logf("verified: %d of %d differ: %v; whole %s after the server was back, lists %v", drift.Count, drift.Objects, found,
		time.Since(back).Round(10*time.Millisecond), verified.Status().Lists)
	require.Subset(t, found, []string{key(1), key(2), key(3), "default/later"})
	require.NotContains(t, found, key(pods-1), "never written")
	require.Equal(t, map[reflector.Class]int{reflector.OK: 1, reflector.Drift: 1}, verified.Status().Lists)

	require.Eventually(t, whole(probed), 30*time.Second, 100*time.Millisecond, "%s", probed.Status())
	t.Logf("probed: whole %s after the server was back, lists %v", time.Since(back).Round(10*time.Millisecond), probed.Status().Lists)
	require.Equal(t, map[reflector.Class]int{reflector.OK: 1, reflector.History: 1}, probed.Status().Lists)
}

// followPassed runs an informer on all pods, with a client of its own: copies of one client share
// their probes.
func followPassed(t *testing.T, config *rest.Config, options ...informer.Option) *informer.Informer[*corev1.Pod] {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return runInformer(t, informer.New(listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods"), options...))
}

// runInformer runs an informer until the test ends, and returns once it is synced.
func runInformer[C interface {
	Run(context.Context) error
	WaitSynced(context.Context) error
}](t *testing.T, i C) C {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	t.Cleanup(func() { end(); require.NoError(t, <-ended) })
	patient, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	require.NoError(t, i.WaitSynced(patient))
	return i
}

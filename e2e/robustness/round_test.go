package robustness_test

import (
	"context"
	"iter"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/etcd/origin"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/sources"
)

// TestRound follows one pod through the whole round: kube-apiserver writes it to etcd, and our
// storage watch, our cache, our server over HTTP, and our reflector bring it to the pod updates of
// its node. Each change has one version and one content at every station. docs/round.md names the
// code of each.
func TestRound(t *testing.T) {
	const node, name, key = "node-1", "traveller", "/registry/pods/default/traveller"
	c := cluster.Start(t)
	writer, err := kubernetes.NewForConfig(c.Server.Config(cluster.Admin))
	require.NoError(t, err)
	direct, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Etcd.URL()}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = direct.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })

	pods, err := origin.New(etcd.New[corev1.Pod](direct, "/registry/pods/"), builtin.Pods().Kind, builtin.Pods().Rules)
	require.NoError(t, err)
	running.Go(func() { _ = pods.Run(ctx) })
	require.NoError(t, pods.WaitSynced(ctx))
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.ServeCache(server, pods.Cache(), builtin.Pods().View, apiserver.FilledBy(pods))
	listener := httptest.NewServer(server)
	t.Cleanup(func() { server.Close(); listener.CloseClientConnections(); listener.Close() })
	client, err := listwatch.NewRESTClient(&rest.Config{Host: listener.URL, QPS: -1}, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	agent := sources.New(node, sources.APIServer(client))
	running.Go(func() { _ = agent.Run(ctx) })
	t.Cleanup(cancel)

	from := metav1.ListOptions{ResourceVersion: pods.Cache().ResourceVersion()}
	stations := []struct {
		name string
		next func() (listwatch.Event[*corev1.Pod], error, bool)
	}{
		{name: "storage watch", next: follow(t, etcd.New[corev1.Pod](direct, "/registry/pods/").Watch(ctx, from))},
		{name: "cache", next: follow(t, pods.Watch(ctx, from))},
		{name: "HTTP", next: follow(t, listwatch.FromClient[corev1.Pod](client, "pods").Watch(ctx, from))},
	}
	told := func() sources.PodUpdate {
		for update := range agent.Updates() {
			if len(update.Pods) > 0 {
				return update
			}
		}
		t.Fatal("the agent has ended")
		return sources.PodUpdate{}
	}

	patch := func(text string, subresources ...string) func() (*corev1.Pod, error) {
		return func() (*corev1.Pod, error) {
			return writer.CoreV1().Pods("default").Patch(ctx, name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresources...)
		}
	}
	for _, step := range []struct {
		write func() (*corev1.Pod, error) // nil without an answer that has the pod
		event watch.EventType
		op    sources.Op
	}{
		{func() (*corev1.Pod, error) {
			return writer.CoreV1().Pods("default").Create(ctx, traveller(name, node), metav1.CreateOptions{})
		}, watch.Added, sources.Add},
		{patch(`{"metadata":{"labels":{"stage":"two"}}}`), watch.Modified, sources.Update},
		{patch(`{"status":{"phase":"Running"}}`, "status"), watch.Modified, sources.Reconcile},
		{func() (*corev1.Pod, error) {
			return nil, writer.CoreV1().Pods("default").Delete(ctx, name, metav1.DeleteOptions{})
		}, watch.Modified, sources.Delete},
		{func() (*corev1.Pod, error) {
			return nil, writer.CoreV1().Pods("default").Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		}, watch.Deleted, sources.Remove},
	} {
		written, err := step.write()
		require.NoError(t, err)
		answer, err := direct.Get(ctx, key)
		require.NoError(t, err)
		changes := 1
		if step.op == sources.Remove {
			changes = 2 // kube-apiserver takes the grace period away first
		}
		var first listwatch.Event[*corev1.Pod]
		for range changes {
			for i, station := range stations {
				event, err, ok := station.next()
				require.NoError(t, err, station.name)
				require.True(t, ok, station.name)
				event.Bytes = 0 // each station has an encoding of its own
				if i == 0 {
					first = event
				}
				require.Equal(t, first, event, station.name)
			}
		}
		require.Equal(t, step.event, first.Type)
		if written != nil {
			require.Equal(t, written, first.Object)
		}
		if step.event == watch.Deleted {
			require.Empty(t, answer.Kvs)
		} else {
			require.Equal(t, strconv.FormatInt(answer.Kvs[0].ModRevision, 10), first.Object.ResourceVersion)
		}
		update := told()
		if step.op == sources.Remove && update.Op == sources.Delete {
			update = told() // the other one was of the first change
		}
		require.Equal(t, step.op, update.Op)
		require.Len(t, update.Pods, 1)
		arrived := update.Pods[0]
		require.Equal(t, first.Object.UID, arrived.UID)
		require.Equal(t, first.Object.Spec, arrived.Spec)
		if step.op != sources.Remove { // which has the last told state
			require.Equal(t, first.Object.ResourceVersion, arrived.ResourceVersion)
			require.Equal(t, first.Object.Labels, arrived.Labels)
			require.Equal(t, first.Object.Status, arrived.Status)
		}
		t.Logf("%s %s at version %s: %s", name, step.event, first.Object.ResourceVersion, update.Op)
	}
}

// follow pulls a watch, and ends it with the test.
func follow(t *testing.T, events iter.Seq2[listwatch.Event[*corev1.Pod], error]) func() (listwatch.Event[*corev1.Pod], error, bool) {
	t.Helper()
	next, stop := iter.Pull2(events)
	t.Cleanup(stop)
	return next
}

func traveller(name, node string) *corev1.Pod {
	pod := besidePod(name)
	pod.Spec.NodeName = node
	return pod
}

package etcd_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/etcd/origin"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/builtin"
)

// TestObjectsExpire: an object goes when its time is over, and watchers of the server are told.
func TestObjectsExpire(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	short, err := origin.New(etcd.New[corev1.Pod](client, pods, etcd.WithExpiry(time.Second)), builtin.Pods().Kind, builtin.Pods().Rules)
	require.NoError(t, err)
	_, server := serveCollection(t, short)
	put(t, client, pod("staying"))
	created, err := server.CoreV1().Pods("ns").Create(t.Context(), pod("short"), metav1.CreateOptions{})
	require.NoError(t, err)
	events := watchFrom(t, listwatch.FromClient[corev1.Pod](server.CoreV1().RESTClient(), "pods"), metav1.ListOptions{
		ResourceVersion: created.ResourceVersion,
	})
	gone := events.next()
	require.Equal(t, watch.Deleted, gone.Type)
	require.Equal(t, created.UID, gone.Object.UID)
	left, err := server.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, left.Items, 1)
	require.Equal(t, "staying", left.Items[0].Name)
}

// TestLeasesAreShared: writes that come close to each other have one lease, of the time that was
// asked for and little more. A lease that etcd has lost is made anew.
func TestLeasesAreShared(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	events, err := origin.New(etcd.New[corev1.Pod](client, pods, etcd.WithExpiry(time.Hour)), builtin.Pods().Kind, builtin.Pods().Rules)
	require.NoError(t, err)
	leaseOf := func(name string) clientv3.LeaseID {
		_, err := events.Create(pod(name))
		require.NoError(t, err)
		answer, err := client.Get(t.Context(), pods+"ns/"+name)
		require.NoError(t, err)
		return clientv3.LeaseID(answer.Kvs[0].Lease)
	}
	first := leaseOf("a")
	lease, err := client.TimeToLive(t.Context(), first)
	require.NoError(t, err)
	require.EqualValues(t, 3600+60, lease.GrantedTTL)
	require.Equal(t, first, leaseOf("b"))
	_, err = client.Revoke(t.Context(), first)
	require.NoError(t, err)
	second := leaseOf("c")
	require.NotEqual(t, first, second)
	for i := range 999 {
		require.Equal(t, second, leaseOf(fmt.Sprint("d-", i)))
	}
	require.NotEqual(t, second, leaseOf("e"), "a lease has a thousand objects at most")

	// Each write begins the time anew.
	longer, err := origin.New(etcd.New[corev1.Pod](client, pods, etcd.WithExpiry(2*time.Hour)), builtin.Pods().Kind, builtin.Pods().Rules)
	require.NoError(t, err)
	stored, err := longer.Get("ns", "e")
	require.NoError(t, err)
	stored = stored.DeepCopy()
	stored.Labels = map[string]string{"seen": "again"}
	_, err = longer.Update(stored)
	require.NoError(t, err)
	answer, err := client.Get(t.Context(), pods+"ns/e")
	require.NoError(t, err)
	lease, err = client.TimeToLive(t.Context(), clientv3.LeaseID(answer.Kvs[0].Lease))
	require.NoError(t, err)
	require.EqualValues(t, 7200+60, lease.GrantedTTL)

	staying, err := origin.New(etcd.New[corev1.Pod](client, pods), builtin.Pods().Kind, builtin.Pods().Rules)
	require.NoError(t, err)
	_, err = staying.Create(pod("staying"))
	require.NoError(t, err)
	answer, err = client.Get(t.Context(), pods+"ns/staying")
	require.NoError(t, err)
	require.Zero(t, answer.Kvs[0].Lease)
	require.Panics(t, func() { etcd.WithExpiry(time.Millisecond) })
}

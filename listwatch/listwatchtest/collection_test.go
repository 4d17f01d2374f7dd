package listwatchtest_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

func TestWritesObeyTheServersRules(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	a := pods.Create(pod("a", onNode("n1"))).DeepCopy()
	a.Status.Phase = corev1.PodRunning
	a.Labels = map[string]string{"k": "v"}
	running := pods.UpdateStatus(a)
	require.Equal(t, corev1.PodRunning, running.Status.Phase)
	require.Equal(t, a.Labels, running.Labels, "the status of a pod comes with its labels, as on a real server")
	_, err := pods.Origin().Update(a)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NotNil(t, pods.Delete(a).DeletionTimestamp, "a bound pod goes gracefully")
	require.Equal(t, 1, pods.Origin().Snapshot().Len())
	pods.Remove(a)
	require.Zero(t, pods.Origin().Snapshot().Len())
}

func TestOnNarrowsAFault(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		client, err := kubernetes.NewForConfig(d.pods.Server().Config())
		require.NoError(t, err)
		refused := d.pods.Fail(listwatchtest.Create, apierrors.NewForbidden(podResource, "a", errors.New("by order of a test")))
		cut := d.pods.Disconnect(listwatchtest.On(listwatchtest.Watch))
		_, _, err = d.names(t.Context(), latest)
		require.NoError(t, err)
		require.Zero(t, refused.Struck()+cut.Struck())
		_, err = client.CoreV1().Pods("ns").Create(t.Context(), pod("a"), metav1.CreateOptions{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.Error(t, d.follow(t, latest).end(t))
		refused.Wait()
		cut.Wait()
	})
}

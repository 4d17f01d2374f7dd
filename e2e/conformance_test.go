package e2e_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// The suite that the fake passes is passed by what it stands for.
func TestConformance(t *testing.T) {
	t.Parallel()
	onServers(t, conformance)
}

func conformance(t *testing.T, on server) {
	t.Parallel()
	c := on.start(t)
	w := newWorld(t, c)
	listwatchtest.Conform(t, func(t *testing.T) listwatchtest.Rig { return w.rig(t, nil) })
	if full {
		t.Run("JSON", func(t *testing.T) {
			json := []listwatch.Option{listwatch.WithJSON()}
			listwatchtest.Conform(t, func(t *testing.T) listwatchtest.Rig { return w.rig(t, json) })
		})
	}
}

// rig is a new namespace of the cluster.
func (w *world) rig(t testing.TB, read []listwatch.Option) listwatchtest.Rig {
	t.Helper()
	namespace, err := w.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	pods := w.client.CoreV1().Pods(namespace.Name)
	return listwatchtest.Rig{
		Source: func(more ...listwatch.Option) listwatch.ListerWatcher[*corev1.Pod] {
			return listwatch.FromClient[corev1.Pod](w.client.CoreV1().RESTClient(), "pods", append(more, read...)...)
		},
		Namespace: namespace.Name,
		Create: func(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
			return pods.Create(ctx, p, metav1.CreateOptions{})
		},
		Update: func(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
			return pods.Update(ctx, p, metav1.UpdateOptions{})
		},
		UpdateStatus: func(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
			return pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
		},
		Delete: func(ctx context.Context, name string) error {
			now := int64(0)
			return pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		},
		Expire: func() { // from etcd's history, and from the server's window, which begins anew
			w.advance()
			w.cluster.Server.Kill()
			w.cluster.Etcd.Compact()
			w.cluster.Server.Restart()
		},
	}
}

package e2e_test

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
)

// TestNodeAuthorizer: with the credentials of a node, the Node authorizer permits the pods of that
// node, probes included, and the Secrets that they mention, by name. It permits no others, nor the
// ReplicaSets of owners.
func TestNodeAuthorizer(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, "--authorization-mode=Node") // beside RBAC
	admin, err := kubernetes.NewForConfig(c.Server.Config(cluster.Admin))
	require.NoError(t, err)
	_, err = admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for _, name := range []string{"tls", "db"} {
		_, err := admin.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	yes := true
	mention := func(pod, node, secret string) {
		_, err := admin.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: pod, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "uid-of-web", Controller: &yes},
			}},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "web", EnvFrom: []corev1.EnvFromSource{
				{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}},
			}}}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	mention("web-1", "node-1", "tls")
	mention("web-2", "node-2", "db")

	config := c.Server.Config(cluster.Admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:node-1", Groups: []string{"system:nodes", "system:authenticated"}}
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	pods := sources.New("node-1", sources.WithLogger(logr.Discard()), sources.APIServer(client, reflector.WithProof(5*time.Second)))
	lookup.New(pods, lookup.Owners(client))
	run(t, pods.Run)
	go func() {
		for range pods.Updates() {
		}
	}()
	<-pods.Synced()
	require.Len(t, pods.Merged(), 1)
	secrets := runRefs(t, client, nil)
	secrets.SetOwner("web-1", refs.In("default", "tls", "db"))
	require.EventuallyWithT(t, func(now *assert.CollectT) { // the authorizer has seen the pod
		_, err := secrets.Get(t.Context(), "default", "tls")
		require.NoError(now, err)
	}, 10*time.Second, 100*time.Millisecond)
	_, err = secrets.Get(t.Context(), "default", "db")
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	mention("web-3", "node-1", "db")
	require.EventuallyWithT(t, func(now *assert.CollectT) {
		_, err := secrets.Get(t.Context(), "default", "db")
		require.NoError(now, err)
	}, 20*time.Second, 100*time.Millisecond)

	began := time.Now()
	require.EventuallyWithT(t, func(t *assert.CollectT) { // probes of both kinds
		for _, status := range pods.Status() {
			if status.Source != sources.APISource {
				require.NotEmpty(t, status.Problems)
				require.ErrorContains(t, status.Problems[0], "forbidden", "owners are no node's business")
				continue
			}
			require.Empty(t, status.Problems)
			require.NotNil(t, status.Reflector)
			require.NoError(t, status.Reflector.ProbeErr)
			require.True(t, status.Reflector.ProvenAt.After(began.Add(15*time.Second)))
		}
	}, 90*time.Second, 100*time.Millisecond)
}

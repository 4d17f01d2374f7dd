package apiserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/server/builtin"
)

// inCluster runs a test in a bubble, beside a fake with all built-in kinds.
func inCluster(t *testing.T, test func(t *testing.T, client kubernetes.Interface)) {
	synctest.Test(t, func(t *testing.T) {
		fake := listwatchtest.NewServer(t)
		builtin.Serve(fake.Origin())
		test(t, kubernetes.NewForConfigOrDie(fake.Config()))
	})
}

func makeNamespace(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	_, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// TestADeletedNamespaceTakesItsObjectsAlong: objects of all kinds go with their namespace, and not
// those of others; a new namespace of that name is empty.
func TestADeletedNamespaceTakesItsObjectsAlong(t *testing.T) {
	inCluster(t, func(t *testing.T, client kubernetes.Interface) {
		for _, name := range []string{"a", "b"} {
			makeNamespace(t, client, name)
			_, err := client.CoreV1().ConfigMaps(name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
			require.NoError(t, err)
			_, err = client.CoreV1().Pods(name).Create(t.Context(), pod("p", inNamespace(name)), metav1.CreateOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, client.CoreV1().Namespaces().Delete(t.Context(), "a", metav1.DeleteOptions{}))
		synctest.Wait()
		_, err := client.CoreV1().Namespaces().Get(t.Context(), "a", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		makeNamespace(t, client, "a")
		for name, want := range map[string]int{"a": 0, "b": 1} {
			maps, err := client.CoreV1().ConfigMaps(name).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, maps.Items, want)
			pods, err := client.CoreV1().Pods(name).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, pods.Items, want)
		}
	})
}

// TestFinalizersHoldANamespace: it is Terminating, says by what it is held, takes no new objects,
// and goes when the finalizer does.
func TestFinalizersHoldANamespace(t *testing.T) {
	inCluster(t, func(t *testing.T, client kubernetes.Interface) {
		makeNamespace(t, client, "a")
		maps := client.CoreV1().ConfigMaps("a")
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: "held", Finalizers: []string{"example.com/hold"},
		}}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, client.CoreV1().Namespaces().Delete(t.Context(), "a", metav1.DeleteOptions{}))
		synctest.Wait()

		namespace, err := client.CoreV1().Namespaces().Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, corev1.NamespaceTerminating, namespace.Status.Phase)
		said := map[corev1.NamespaceConditionType]string{}
		for _, c := range namespace.Status.Conditions {
			said[c.Type] = string(c.Status) + ": " + c.Message
		}
		require.Equal(t, "True: Some resources are remaining: configmaps. has 1 resource instances", said[corev1.NamespaceContentRemaining])
		require.Equal(t, "True: Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
			said[corev1.NamespaceFinalizersRemaining])
		require.Len(t, said, 5)

		_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.True(t, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause))
		_, err = maps.Patch(t.Context(), "new", types.ApplyPatchType,
			[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"}}`), metav1.PatchOptions{FieldManager: "m"})
		require.True(t, apierrors.IsForbidden(err), "%v", err)

		time.Sleep(time.Minute)
		_, err = maps.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		_, err = client.CoreV1().Namespaces().Get(t.Context(), "a", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}

// TestPodsGoBeforeTheirNamespace: a pod that a kubelet has to stop holds the other objects, too, as
// with the namespace controller.
func TestPodsGoBeforeTheirNamespace(t *testing.T) {
	inCluster(t, func(t *testing.T, client kubernetes.Interface) {
		makeNamespace(t, client, "a")
		_, err := client.CoreV1().Pods("a").Create(t.Context(), pod("p", inNamespace("a"), onNode("n")), metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = client.CoreV1().Secrets("a").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, client.CoreV1().Namespaces().Delete(t.Context(), "a", metav1.DeleteOptions{}))
		time.Sleep(time.Hour)
		stopping, err := client.CoreV1().Pods("a").Get(t.Context(), "p", metav1.GetOptions{})
		require.NoError(t, err)
		require.NotNil(t, stopping.DeletionTimestamp)
		_, err = client.CoreV1().Secrets("a").Get(t.Context(), "s", metav1.GetOptions{})
		require.NoError(t, err)
		none := int64(0)
		require.NoError(t, client.CoreV1().Pods("a").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &none}))
		time.Sleep(2 * time.Second)
		_, err = client.CoreV1().Secrets("a").Get(t.Context(), "s", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		_, err = client.CoreV1().Namespaces().Get(t.Context(), "a", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}

// TestFinalizersOfANamespace: those of its spec are written by the finalize subresource alone.
func TestFinalizersOfANamespace(t *testing.T) {
	inCluster(t, func(t *testing.T, client kubernetes.Interface) {
		namespaces := client.CoreV1().Namespaces()
		made, err := namespaces.Create(t.Context(), &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"example.com/mine"}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		both := []corev1.FinalizerName{"example.com/mine", corev1.FinalizerKubernetes}
		require.Equal(t, both, made.Spec.Finalizers)
		made.Spec.Finalizers = nil
		updated, err := namespaces.Update(t.Context(), made, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.Equal(t, both, updated.Spec.Finalizers)

		require.NoError(t, namespaces.Delete(t.Context(), "a", metav1.DeleteOptions{}))
		synctest.Wait()
		ending, err := namespaces.Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, []corev1.FinalizerName{"example.com/mine"}, ending.Spec.Finalizers, "the server has done its part")
		ending.Spec.Finalizers = nil
		_, err = namespaces.Finalize(t.Context(), ending, metav1.UpdateOptions{})
		require.NoError(t, err)
		_, err = namespaces.Get(t.Context(), "a", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%v", err)
	})
}

func TestNamespacesThatCannotBeDeleted(t *testing.T) {
	inCluster(t, func(t *testing.T, client kubernetes.Interface) {
		for _, name := range []string{"default", "kube-system", "kube-public"} {
			err := client.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{})
			require.True(t, apierrors.IsForbidden(err), "%v", err)
		}
		require.NoError(t, client.CoreV1().Namespaces().Delete(t.Context(), "kube-node-lease", metav1.DeleteOptions{}))
	})
}

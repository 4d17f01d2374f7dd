package clientgo_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/watchcache"
)

// TestFromClientset: options narrow the collection, objects share memory, and a transform owns its
// argument. A namespace does not narrow a type in cluster scope.
func TestFromClientset(t *testing.T) {
	pods := listwatchtest.New(t, watchcache.Pods())
	resource := watchcache.Core[*corev1.Node]("nodes", "Node")
	resource.ClusterScoped = true
	nodes := listwatchtest.Serve(pods.Server(), resource)
	nodes.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	for _, namespace := range []string{"ns", "other"} {
		pods.Create(onNode(namespace, "a", "n1"))
		pods.Create(onNode(namespace, "b", "n1"))
	}
	client, err := kubernetes.NewForConfig(pods.Server().Config())
	require.NoError(t, err)
	narrow := []listwatch.Option{listwatch.InNamespace("ns"), listwatch.Labels(labels.Everything())}
	ofPods := clientgo.FromClientset(client, &corev1.Pod{}, 0, narrow...)
	require.NoError(t, ofPods.SetTransform(func(obj any) (any, error) {
		obj.(*corev1.Pod).Spec.NodeName = "changed"
		return obj, nil
	}))
	ofNodes := clientgo.FromClientset(client, &corev1.Node{}, 0, narrow...)
	running(t, ofPods.RunWithContext)
	running(t, ofNodes.RunWithContext)
	<-ofPods.HasSyncedChecker().Done()
	<-ofNodes.HasSyncedChecker().Done()
	require.ElementsMatch(t, []string{"ns/a", "ns/b"}, ofPods.GetStore().ListKeys())
	require.Equal(t, []string{"n1"}, ofNodes.GetStore().ListKeys())
	for _, obj := range ofPods.GetStore().List() {
		require.Equal(t, "changed", obj.(*corev1.Pod).Spec.NodeName)
	}
	require.True(t, clientgo.HasResource(client, &corev1.Pod{}))
	require.False(t, clientgo.HasResource(client, &metav1.PartialObjectMetadata{}))
	require.False(t, clientgo.HasResource(nil, &corev1.Pod{}))
	require.PanicsWithValue(t, "clientgo: FromClientset: a *kubernetes.Clientset has no resource of *v1.PartialObjectMetadata", func() {
		clientgo.FromClientset(client, &metav1.PartialObjectMetadata{}, 0)
	})
}

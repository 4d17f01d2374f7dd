package clientgo_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestFromClientset: options narrow the collection, objects share memory, and a transform owns its
// argument. A namespace does not narrow a type in cluster scope.
func TestFromClientset(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	nodes := listwatchtest.Serve(pods.Server(), listwatchtest.Of[*corev1.Node]())
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

// TestANarrowFactory: ours read no more than the factory's own would.
func TestANarrowFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(onNode("ns", "a", "n1"), onNode("other", "b", "n1"))
		factory := clientgo.Factory(informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("ns")), []runtime.Object{&corev1.Pod{}})
		ctx, cancel := context.WithCancel(t.Context())
		factory.Start(ctx.Done())
		defer factory.Shutdown()
		defer cancel()
		require.Len(t, factory.WaitForCacheSync(ctx.Done()), 1)
		require.Equal(t, []string{"ns/a"}, factory.Core().V1().Pods().Informer().GetStore().ListKeys())

		tweaked := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "app=a" }))
		require.PanicsWithValue(t, "clientgo: Factory: the factory has a tweak of list options, which cannot be read: give the same as options, such as listwatch.Labels", func() {
			clientgo.Factory(tweaked, []runtime.Object{&corev1.Pod{}})
		})
		clientgo.Factory(tweaked, []runtime.Object{&corev1.Pod{}}, listwatch.Labels(labels.SelectorFromSet(labels.Set{"app": "a"})))
	})
}

// TestGeneratedFactory: a generated factory has our informers of the types named, with its own
// transform and interval, and client-go's of the others. Options narrow ours.
func TestGeneratedFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(onNode("ns", "a", "n1"), onNode("other", "b", "n1"), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "s"},
		})
		generated := informers.NewSharedInformerFactoryWithOptions(client, 10*time.Second, informers.WithTransform(func(obj any) (any, error) {
			obj.(metav1.Object).SetLabels(map[string]string{"transformed": "yes"})
			return obj, nil
		}))
		factory := clientgo.Factory(generated, []runtime.Object{&corev1.Pod{}}, listwatch.InNamespace("ns"))
		pods, secrets := factory.Core().V1().Pods(), factory.Core().V1().Secrets()
		told := &transcript{}
		_, err := pods.Informer().AddEventHandler(told)
		require.NoError(t, err)
		_, err = secrets.Informer().AddEventHandler(&transcript{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		factory.Start(ctx.Done())
		defer factory.Shutdown()
		defer cancel()
		require.Len(t, factory.WaitForCacheSync(ctx.Done()), 2)
		require.Equal(t, []string{"ns/a"}, pods.Informer().GetStore().ListKeys())
		require.Equal(t, []string{"other/s"}, secrets.Informer().GetStore().ListKeys())
		pod, err := pods.Lister().Pods("ns").Get("a")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"transformed": "yes"}, pod.Labels)
		_, ours := clientgo.StatusOf(factory.InformerFor(&corev1.Pod{}, nil))
		require.True(t, ours)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.Len(t, told.take(), 2, "one is a redelivery")
		require.PanicsWithValue(t, "clientgo: Factory: the factory has an informer of *v1.Secret already: call Factory first", func() {
			clientgo.Factory(generated, []runtime.Object{&corev1.Secret{}})
		})
	})
}

package interop_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	m.Run()
}

func onNode(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func newQueue(t *testing.T) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	return queue
}

func next(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) string {
	request, _ := queue.Get()
	queue.Done(request)
	return request.String()
}

// running runs something until the test ends, and waits for it.
func running(t *testing.T, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestInformerIsASource gives one of our informers to controller-runtime as it is.
func TestInformerIsASource(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	a := pods.Create(onNode("a", "n1"))
	ours := informer.New(pods.ListerWatcher())
	queue := newQueue(t)
	from := &source.Informer{Informer: clientgo.Informer(ours), Handler: &handler.EnqueueRequestForObject{}}
	require.NoError(t, from.Start(t.Context(), queue))
	running(t, ours.Run)
	require.Equal(t, "ns/a", next(queue))
	pods.Create(onNode("b", "n1"))
	require.Equal(t, "ns/b", next(queue))
	pods.Remove(a)
	require.Equal(t, "ns/a", next(queue))
}

// newCache is controller-runtime's cache with informers of ours, on a fake.
func newCache(t *testing.T, pods *listwatchtest.Collection[*corev1.Pod], configure func(*cache.Options)) cache.Cache {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	options := cache.Options{Scheme: scheme.Scheme, Mapper: mapper, NewInformer: clientgo.NewInformer}
	configure(&options)
	c, err := cache.New(pods.Server().Listen(), options)
	require.NoError(t, err)
	return c
}

// TestKind runs source.Kind, reads and indexes of controller-runtime's cache on our informers, for
// each of the three forms in which it holds objects.
func TestKind(t *testing.T) {
	ofPods := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	document := &unstructured.Unstructured{}
	document.SetGroupVersionKind(ofPods)
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(ofPods)
	documents, metadatas := &unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}
	documents.SetGroupVersionKind(ofPods.GroupVersion().WithKind("PodList"))
	metadatas.SetGroupVersionKind(ofPods.GroupVersion().WithKind("PodList"))
	for name, row := range map[string]struct {
		object client.Object
		list   client.ObjectList
	}{
		"typed":    {&corev1.Pod{}, &corev1.PodList{}},
		"document": {document, documents},
		"metadata": {metadata, metadatas},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			pods := listwatchtest.New(t, listwatchtest.Pods())
			a := pods.Create(onNode("a", "n1"))
			c := newCache(t, pods, func(*cache.Options) {})
			require.NoError(t, c.IndexField(ctx, row.object, "app", func(o client.Object) []string {
				return []string{o.GetLabels()["app"]}
			}))
			running(t, c.Start)
			queue := newQueue(t)
			kind := source.Kind(c, row.object, handler.TypedEnqueueRequestsFromMapFunc(
				func(_ context.Context, o client.Object) []reconcile.Request {
					return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
				}))
			require.NoError(t, kind.Start(ctx, queue))
			require.NoError(t, kind.WaitForSync(ctx))
			require.Equal(t, "ns/a", next(queue))
			pods.Create(onNode("b", "n1"))
			require.Equal(t, "ns/b", next(queue))

			require.NoError(t, c.List(ctx, row.list, client.InNamespace("ns"), client.MatchingFields{"app": "b"}))
			require.Equal(t, 1, meta.LenList(row.list))
			require.NoError(t, c.List(ctx, row.list, client.MatchingLabels{"app": "a"}))
			require.Equal(t, 1, meta.LenList(row.list))
			require.NoError(t, c.List(ctx, row.list, client.InNamespace("ns")))
			require.Equal(t, 2, meta.LenList(row.list))

			pods.Remove(a)
			require.Equal(t, "ns/a", next(queue))
			got := row.object.DeepCopyObject().(client.Object)
			require.NoError(t, c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "b"}, got))
			require.Equal(t, "b", got.GetName())
			require.NoError(t, client.IgnoreNotFound(c.Get(ctx, client.ObjectKeyFromObject(a), got)))
		})
	}
}

// TestTransformAndRemoval: what controller-runtime sets on its informers, and how it ends one of
// them.
func TestTransformAndRemoval(t *testing.T) {
	ctx := t.Context()
	pods := listwatchtest.New(t, listwatchtest.Pods())
	pods.Create(onNode("a", "n1"))
	c := newCache(t, pods, func(o *cache.Options) {
		o.DefaultTransform = func(obj any) (any, error) {
			pod := obj.(*corev1.Pod).DeepCopy()
			pod.Spec = corev1.PodSpec{}
			return pod, nil
		}
	})
	running(t, c.Start)
	require.True(t, c.WaitForCacheSync(ctx))
	var pod corev1.Pod
	require.NoError(t, c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "a"}, &pod))
	require.Empty(t, pod.Spec.NodeName)
	pods.Server().AwaitWatches(1)
	shared, err := c.GetInformer(ctx, &corev1.Pod{})
	require.NoError(t, err)
	require.NoError(t, c.RemoveInformer(ctx, &corev1.Pod{}))
	pods.Server().AwaitWatches(0)
	require.Eventually(t, shared.IsStopped, time.Minute, time.Millisecond)
}

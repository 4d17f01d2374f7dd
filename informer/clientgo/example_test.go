package clientgo_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
)

// An informer of one type, as NewPodInformer and NewFilteredPodInformer of client-go's
// informers/core/v1 make it.
func ExampleFromClientset() {
	clientset := fake.NewClientset(onNode("ns", "a", "n1"), onNode("ns", "b", "n2"), onNode("other", "c", "n1"))
	ctx, stop := context.WithCancel(context.Background())

	// Was coreinformers.NewFilteredPodInformer(clientset, "ns", 0, indexers, tweak).
	pods := clientgo.FromClientset(clientset, &corev1.Pod{}, 0,
		listwatch.InNamespace("ns"), listwatch.Fields(fields.OneTermNotEqualSelector("spec.nodeName", "")))
	if err := pods.AddIndexers(cache.Indexers{"node": byNode}); err != nil {
		panic(err)
	}

	ended := make(chan struct{})
	go func() { pods.RunWithContext(ctx); close(ended) }()
	cache.WaitForCacheSync(ctx.Done(), pods.HasSynced)
	onFirst, err := pods.GetIndexer().ByIndex("node", "n1")
	fmt.Println(len(pods.GetStore().List()), len(onFirst), err)
	stop()
	<-ended
	// Output: 2 1 <nil>
}

// A store and a controller, as cache.NewInformer and cache.NewIndexerInformer make them.
func ExampleNewIndexerInformer() {
	clientset := fake.NewClientset(onNode("ns", "a", "n1"))
	ctx, stop := context.WithCancel(context.Background())
	client := clientset.CoreV1().Pods(metav1.NamespaceAll)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: client.Watch,
	}
	added := make(chan string)
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { added <- obj.(*corev1.Pod).Name }}

	indexer, controller := clientgo.NewIndexerInformer(lw, &corev1.Pod{}, 0, handler, cache.Indexers{"node": byNode})
	ended := make(chan struct{})
	go func() { controller.RunWithContext(ctx); close(ended) }()
	fmt.Println("added", <-added)
	onFirst, err := indexer.IndexKeys("node", "n1")
	fmt.Println(onFirst, err)
	stop()
	<-ended
	// Output:
	// added a
	// [ns/a] <nil>
}

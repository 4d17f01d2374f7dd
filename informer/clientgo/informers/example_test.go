package informers_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/informer/clientgo/informers"
	"github.com/tributary-go/tributary/store/packed"
)

// The lines of a program that are the same with client-go's factory.
func ExampleNewSharedInformerFactory() {
	clientset := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}})
	added := make(chan string)

	factory := informers.NewSharedInformerFactory(clientset, time.Hour)
	pods := factory.Core().V1().Pods()
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { added <- obj.(*corev1.Pod).Name },
	})
	if err != nil {
		panic(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	fmt.Println("added", <-added)
	pod, err := pods.Lister().Pods("default").Get("web-0")
	fmt.Println(pod.Name, err)
	stop()
	factory.Shutdown()
	// Output:
	// added web-0
	// web-0 <nil>
}

// Pods as packed bytes, for a handler that needs their keys alone.
func ExampleWithPacked() {
	clientset := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}})
	keys := make(chan string)

	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0,
		informers.WithPacked(packed.Like, &corev1.Pod{})) // store/packed; without a type, all types
	pods := factory.Core().V1().Pods()
	_, err := pods.Informer().AddEventHandler(clientgo.ByMetadata(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			key, _ := cache.MetaNamespaceKeyFunc(obj)
			keys <- key
		},
	}))
	if err != nil {
		panic(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	fmt.Println("added", <-keys)
	pod, err := pods.Lister().Pods("default").Get("web-0")
	fmt.Println(pod.Name, err)
	stop()
	factory.Shutdown()
	// Output:
	// added default/web-0
	// web-0 <nil>
}

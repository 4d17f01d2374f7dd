package listwatch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
)

// A node's pods, read one by one. A real program has the rest.Config of its cluster.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.URL)
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42"},
			"items":[{"metadata":{"namespace":"shop","name":"web"}},{"metadata":{"namespace":"shop","name":"db"}}]}`)
	}))
	defer server.Close()
	clientset, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}

	lw := listwatch.FromClient[corev1.Pod](clientset.CoreV1().RESTClient(), "pods",
		listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", "node-1")))
	list := lw.List(context.Background(), metav1.ListOptions{})
	for pod, err := range list.Items {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(pod.Namespace, pod.Name)
	}
	fmt.Println("resource version", list.Meta().ResourceVersion)
	// Output:
	// /api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1
	// shop web
	// shop db
	// resource version 42
}

// The methods of any typed client will do, even those of a fake one.
func ExampleFromFuncs() {
	pods := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}).CoreV1().Pods("shop")
	lw := listwatch.FromFuncs[*corev1.Pod](pods.List, pods.Watch, listwatch.WithoutWatchList())
	for pod, err := range lw.List(context.Background(), metav1.ListOptions{}).Items {
		fmt.Println(pod.Name, err)
	}
	// Output:
	// web <nil>
}

// podServer answers every list with two pods, in JSON. A real program has the rest.Config of its
// cluster.
func podServer() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42"},"items":[
			{"metadata":{"namespace":"shop","name":"web","labels":{"app":"web"},"managedFields":[{"manager":"kubectl"}]},"spec":{"nodeName":"node-1"}},
			{"metadata":{"namespace":"shop","name":"db","labels":{"app":"db"},"managedFields":[{"manager":"kubectl"}]},"spec":{"nodeName":"node-2"}}]}`)
	}))
}

// Only each pod's labels and node are kept.
func ExampleProject() {
	server := podServer()
	defer server.Close()
	clientset := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})

	whole := listwatch.FromClient[corev1.Pod](clientset.CoreV1().RESTClient(), "pods", listwatch.DropManagedFields())
	pods := listwatch.Project(whole, func(p *corev1.Pod) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Labels: p.Labels},
			Spec:       corev1.PodSpec{NodeName: p.Spec.NodeName},
		}
	})
	for pod, err := range pods.List(context.Background(), metav1.ListOptions{}).Items {
		fmt.Println(pod.Name, pod.Labels, pod.Spec.NodeName, err)
	}
	// Output:
	// web map[app:web] node-1 <nil>
	// db map[app:db] node-2 <nil>
}

// Two replicas divide the pods: each object has one replica.
func ExampleShard() {
	clientset := fake.NewClientset(
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "c3a1"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "7be0"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache", UID: "19f4"}})
	pods := clientset.CoreV1().Pods("shop")
	for replica := range 2 {
		part := listwatch.FromFuncs[*corev1.Pod](pods.List, pods.Watch, listwatch.Shard(replica, 2))
		for pod, err := range part.List(context.Background(), metav1.ListOptions{}).Items {
			fmt.Println(replica, pod.Name, err)
		}
	}
	// Output:
	// 0 web <nil>
	// 1 cache <nil>
	// 1 db <nil>
}

// The detector names the object and the field that a program wrote into.
func ExampleWithMutationDetector() {
	server := podServer()
	defer server.Close()
	clientset := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL})

	pods := listwatch.FromClient[corev1.Pod](clientset.CoreV1().RESTClient(), "pods",
		listwatch.WithMutationDetector(func(m listwatch.Mutation) { fmt.Println("written into:", m.Object, m.Path) }))
	for pod := range pods.List(context.Background(), metav1.ListOptions{}).Items {
		if pod.Name == "web" {
			pod.Labels["app"] = "mine"
		}
	}
	// Output:
	// written into: shop/web metadata.labels[app]
}

package tributary_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/undelta"
)

// cluster starts an API server with two pods and returns its core/v1 client. A program gets one
// from clientset.CoreV1().RESTClient() or listwatch.NewRESTClient.
func cluster() (client rest.Interface, stop func()) {
	api, _ := apiserver.NewServer()
	pods := apiserver.Serve(api, builtin.Pods())
	for i, name := range []string{"web-0", "web-1"} {
		_, _ = pods.Create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i+1), Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
		})
	}
	server := httptest.NewServer(api)
	client, _ = listwatch.NewRESTClient(&rest.Config{Host: server.URL}, corev1.SchemeGroupVersion)
	return client, func() { api.Close(); server.Close() }
}

func manifests() (folder string, remove func()) {
	folder, _ = os.MkdirTemp("", "manifests")
	manifest := "{apiVersion: v1, kind: Pod, metadata: {name: etcd}, spec: {containers: [{name: main, image: etcd}]}}"
	_ = os.WriteFile(filepath.Join(folder, "etcd.yaml"), []byte("# a comment\n"+manifest), 0o600)
	return folder, func() { _ = os.RemoveAll(folder) }
}

func Example_nodeAgent() {
	client, stop := cluster()
	defer stop()
	folder, remove := manifests()
	defer remove()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	told := map[string]bool{}

	pods := sources.New("node-1",
		sources.APIServer(client), // the pods with spec.nodeName=node-1
		sources.File(folder))      // and the manifests of a folder
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	for update := range pods.Updates() {
		for _, pod := range update.Pods {
			told[fmt.Sprintf("%s %s/%s from %s", update.Op, pod.Namespace, pod.Name, update.Source)] = true
		}
		if len(told) == 2 {
			cancel() // Run ends, and closes Updates
		}
	}

	fmt.Println(told, <-ended)
	// Output: map[ADD default/etcd-node-1 from file:true ADD default/web-0 from api:true] <nil>
}

func Example_cachedCollection() {
	client, stop := cluster()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	byNode := store.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	pods := store.NewIndexer(byNode)
	r := reflector.New(listwatch.FromClient[corev1.Pod](client, "pods"), pods)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	if err := r.WaitSynced(ctx); err != nil {
		fmt.Println(err) // names the cause, such as a 403
	}
	now := pods.Snapshot() // immutable, read without a lock, O(1)
	for pod := range byNode.Objects(now, "node-1") {
		fmt.Println(pod.Name, "at version", now.ResourceVersion())
	}

	cancel()
	fmt.Println("ended:", <-ended)
	// Output:
	// web-0 at version 3
	// ended: <nil>
}

func Example_pushPerChange() {
	client, stop := cluster()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	pods := undelta.New(func(now store.Snapshot[*corev1.Pod]) {
		fmt.Println(now.Len(), "pods") // the whole state, once per change, in order
		cancel()
	})
	err := reflector.New(listwatch.FromClient[corev1.Pod](client, "pods"), pods).Run(ctx)

	fmt.Println("ended:", err)
	// Output:
	// 2 pods
	// ended: <nil>
}

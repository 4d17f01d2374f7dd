package informer_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/store"
)

func ExampleAcquire() {
	server, err := apiserver.NewServer()
	check(err)
	defer server.Close()
	_, err = apiserver.Serve(server, builtin.Pods()).Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.PodSpec{NodeName: "node-1"},
	})
	check(err)
	listener := httptest.NewServer(server)
	defer listener.Close()

	// The program makes one set.
	ctx, stop := context.WithCancel(context.Background())
	set := informer.NewSet(&rest.Config{Host: listener.URL})
	ended := make(chan error)
	go func() { ended <- set.Run(ctx) }()

	// A component leases what it reads, and declares its indexes there.
	byNode := store.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	pods, err := informer.Acquire[corev1.Pod](set, corev1.SchemeGroupVersion.WithResource("pods"))
	check(err)
	pods.AddIndexes(byNode)
	check(set.WaitSynced(ctx)) // all leased copies

	for pod := range byNode.Objects(pods.Snapshot(), "node-1") {
		fmt.Println(pod.Name, "is on node-1")
	}
	_, err = store.Find(pods, "ns", "db")
	fmt.Println(err, apierrors.IsNotFound(err))

	pods.Close()
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// web is on node-1
	// Pod "db" not found true
	// ended: <nil>
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

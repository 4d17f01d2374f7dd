package join_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/join"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/store"
)

func Example() {
	// A program has listwatch.FromClient[corev1.Pod](client, "pods") instead.
	server, _ := apiserver.NewServer()
	podServer, nodeServer := apiserver.Serve(server, builtin.Pods()), apiserver.Serve(server, builtin.Of[*corev1.Node]())
	_, _ = nodeServer.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})

	byNode := store.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	nodeInformer := informer.New[*corev1.Node](nodeServer.Cache())
	podInformer := informer.New[*corev1.Pod](podServer.Cache(), informer.WithIndexes(byNode))
	var cluster join.View
	nodes, pods := join.Add(&cluster, nodeInformer), join.Add(&cluster, podInformer)

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- nodeInformer.Run(ctx) }()
	go func() { ended <- podInformer.Run(ctx) }()
	err := cluster.Run(ctx, func(now join.Moment) {
		for name := range nodes.In(now).All() {
			fmt.Println(name, "has", byNode.Len(pods.In(now), name), "pods")
		}
		if pods.In(now).Len() == 1 {
			stop()
			return
		}
		_, _ = podServer.Create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.PodSpec{NodeName: "node-1"},
		})
	})
	fmt.Println("ended:", err, <-ended, <-ended)
	// Output:
	// node-1 has 0 pods
	// node-1 has 1 pods
	// ended: <nil> <nil> <nil>
}

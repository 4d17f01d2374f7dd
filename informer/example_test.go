package informer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/informer"
)

func Example() {
	// A program has listwatch.FromClient[corev1.Pod](client, "pods") instead.
	server := newServer("web", "db")

	ctx, stop := context.WithCancel(context.Background())
	pods := informer.New[*corev1.Pod](server)
	ended := make(chan error)
	go func() { ended <- pods.Run(ctx) }()
	if err := pods.WaitSynced(ctx); err != nil {
		fmt.Println(err)
	}

	// A write, and a read that is sure to include it.
	written := server.put("web")
	if err := pods.WaitFor(ctx, written); err != nil {
		fmt.Println(err)
	}
	web, _ := pods.Snapshot().Get("ns/web")
	fmt.Println("web is at version", web.ResourceVersion)

	for e := range pods.Events(ctx) {
		if e.Initial && e.Key == "ns/web" {
			server.remove("web")
		}
		if e.Type == informer.Deleted {
			fmt.Println(e.Key, "is gone, and was last seen at version", e.Old.ResourceVersion)
			break
		}
	}
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// web is at version 3
	// ns/web is gone, and was last seen at version 4
	// ended: <nil>
}

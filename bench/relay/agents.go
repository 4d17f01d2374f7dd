package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/internal/self"
)

// node is the task of the process of all agents of a node.
type node struct {
	Agents    int
	URL, Name string
	Token     string // of all; empty: each has its own
}

// beAgents says when all agents have their first states, and ends with its input.
func beAgents(ctx context.Context, n node) error {
	ctx = self.UntilInputEnds(ctx)
	var synced, running sync.WaitGroup
	for i := range n.Agents {
		synced.Add(1)
		running.Go(func() {
			token := n.Token
			if token == "" {
				token = fmt.Sprint("agent-", i)
			}
			config := &rest.Config{
				Host: n.URL, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
				Dial: (&net.Dialer{}).DialContext, // a connection of its own
			}
			if err := beAgent(ctx, config, n.Name, synced.Done); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		})
	}
	synced.Wait()
	fmt.Println("synced")
	<-ctx.Done()
	running.Wait()
	return nil
}

// beAgent is client-go's informers of the pods of a node, the services and the nodes.
func beAgent(ctx context.Context, config *rest.Config, node string, synced func()) error {
	config.ContentType, config.AcceptContentTypes = harness.Protobuf, harness.Protobuf+",application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ofNode := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}))
	rest := informers.NewSharedInformerFactory(client, 0)
	all := []cache.SharedIndexInformer{ofNode.Core().V1().Pods().Informer(), rest.Core().V1().Services().Informer(), rest.Core().V1().Nodes().Informer()}
	var has []cache.InformerSynced
	for _, informer := range all {
		has = append(has, informer.HasSynced)
	}
	ofNode.StartWithContext(ctx)
	rest.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), has...) {
		return ctx.Err()
	}
	synced()
	<-ctx.Done()
	ofNode.Shutdown()
	rest.Shutdown()
	return nil
}

package cluster

import (
	"context"
	"fmt"
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

// Agents runs n agents until the input of this process ends. When each has called synced, it says
// what say returns.
func Agents(ctx context.Context, n int, run func(ctx context.Context, i int, synced func()), say func() []any) {
	ctx = self.UntilInputEnds(ctx)
	var ready, running sync.WaitGroup
	ready.Add(n)
	for i := range n {
		running.Go(func() {
			if err := harness.Try(func() { run(ctx, i, ready.Done) }); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		})
	}
	ready.Wait()
	fmt.Println(say()...)
	<-ctx.Done()
	running.Wait()
}

// Informers are client-go's: of the pods of a node, and if all is set, of the services and nodes.
// They run until ctx ends; synced is called once they have their first states.
func Informers(ctx context.Context, config *rest.Config, node string, all bool, synced func()) {
	client := harness.Must(kubernetes.NewForConfig(config))
	factories := []informers.SharedInformerFactory{
		informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
		})),
	}
	of := []cache.SharedIndexInformer{factories[0].Core().V1().Pods().Informer()}
	if all {
		factories = append(factories, informers.NewSharedInformerFactory(client, 0))
		of = append(of, factories[1].Core().V1().Services().Informer(), factories[1].Core().V1().Nodes().Informer())
	}
	var has []cache.InformerSynced
	for _, informer := range of {
		harness.Must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{}))
		has = append(has, informer.HasSynced)
	}
	for _, factory := range factories {
		factory.StartWithContext(ctx)
		defer factory.Shutdown()
	}
	if !cache.WaitForCacheSync(ctx.Done(), has...) {
		harness.Check(ctx.Err())
	}
	synced()
	<-ctx.Done()
}

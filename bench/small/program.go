package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// programKinds have an informer each in a program such as an operator.
var programKinds = []programKind{
	kindIn[corev1.Pod](world.VariedPod), kindIn[corev1.Service]("Service"), kindIn[corev1.Node]("Node"),
	kindIn[discoveryv1.EndpointSlice]("EndpointSlice"), kindIn[coordinationv1.Lease]("Lease"), kindIn[corev1.Event]("Event"),
	kindIn[corev1.Secret]("Secret"),
}

// programKind is a kind with the informers of both libraries. They return the informer, and the
// wait until its handler has the first state.
type programKind struct {
	world.Kind
	ours, clientGos func(context.Context, rest.Interface) (it any, wait func())
}

func kindIn[O any, T interface {
	*O
	store.Object
}](name string) programKind {
	k := programKind{Kind: world.KindOf(name)}
	k.ours = func(ctx context.Context, client rest.Interface) (any, func()) {
		it := informer.New(listwatch.FromClient[O, T](client, k.Resource))
		h := harness.Must(it.AddHandler(func(informer.Event[T]) {}))
		go func() { _ = it.Run(ctx) }()
		return it, func() { _ = h.WaitSynced(ctx) }
	}
	k.clientGos = func(ctx context.Context, client rest.Interface) (any, func()) {
		source := clientcache.NewListWatchFromClient(client, k.Resource, "", fields.Everything())
		it := clientcache.NewSharedIndexInformer(source, T(new(O)), 0, clientcache.Indexers{})
		h := harness.Must(it.AddEventHandler(clientcache.ResourceEventHandlerFuncs{AddFunc: func(any) {}}))
		go it.RunWithContext(ctx)
		return it, func() { clientcache.WaitForCacheSync(ctx.Done(), h.HasSynced) }
	}
	return k
}

// program starts the informers of one program, one of each kind.
func (m measurement) program(ctx context.Context, config *rest.Config) copies {
	var synced sync.WaitGroup
	c := copies{handlers: len(programKinds), wait: synced.Wait}
	for _, k := range programKinds {
		start := k.ours
		if m.Library == clientGo {
			start = k.clientGos
		}
		it, wait := start(ctx, harness.RESTClient(config, k.Version))
		synced.Go(wait)
		c.held = append(c.held, it)
	}
	return c
}

// serveProgram sends the first states of the kinds of a program, of so many objects each.
func serveProgram(w http.ResponseWriter, r *http.Request, count int) {
	i := slices.IndexFunc(programKinds, func(k programKind) bool { return strings.HasSuffix(r.URL.Path, "/"+k.Resource) })
	kind{Kind: programKinds[i].Kind}.state(0, count).Send(w, r, nil)
}

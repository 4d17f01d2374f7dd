// Command refs follows the Secrets and ConfigMaps that the pods of one node mention, and prints for
// each change which pods it concerns. It holds no other Secret, and never prints a value.
//
//	KUBECONFIG=… NODE_NAME=node-1 go run ./examples/refs
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		err = run(ctx, config, os.Getenv("NODE_NAME"), os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// byUID finds the pods that own a name.
var byUID = store.NewIndex("uid", func(p *corev1.Pod) []string { return []string{string(p.UID)} })

func run(ctx context.Context, config *rest.Config, node string, out io.Writer) error {
	config.QPS, config.Burst = 50, 100 // as the kubelet; client-go's default is 5 requests a second
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	pods := informer.New(listwatch.FromClient[corev1.Pod](client, "pods",
		listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", node))), informer.WithIndexes(byUID))
	secrets := refs.New(refs.FromClient[corev1.Secret](client, "secrets"), refs.FromOwners(pods, refs.SecretsOf))
	configMaps := refs.New(refs.FromClient[corev1.ConfigMap](client, "configmaps"), refs.FromOwners(pods, refs.ConfigMapsOf))

	lines := &printer{out: out, pods: pods}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 3)
	var all sync.WaitGroup
	for _, run := range []func(context.Context) error{pods.Run, secrets.Run, configMaps.Run} {
		all.Go(func() { ended <- run(ctx) })
	}
	all.Go(func() { tell(ctx, lines, "Secret", secrets) })
	all.Go(func() { tell(ctx, lines, "ConfigMap", configMaps) })
	err = <-ended // nil at the interrupt
	stop()
	all.Wait()
	return err
}

func tell[O any, T interface {
	*O
	store.Object
}](ctx context.Context, lines *printer, kind string, of *refs.Refs[T]) {
	for change := range of.Changes(ctx) {
		what := "changed"
		switch {
		case len(change.Owners) == 0:
			what = "no longer mentioned"
		case change.New == nil:
			what = "deleted"
		case change.Old == nil:
			what = "there"
		}
		lines.print(kind, change.Name, what, change.Owners)
	}
}

// printer writes lines of several loops.
type printer struct {
	pods *informer.Informer[*corev1.Pod]

	mu  sync.Mutex // guards out
	out io.Writer
}

func (p *printer) print(kind string, name types.NamespacedName, what string, owners []types.UID) {
	var names []string
	for _, uid := range owners {
		for pod := range byUID.Objects(p.pods.Snapshot(), string(uid)) {
			names = append(names, pod.Name)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "%s %s is %s: %s\n", kind, name, what, strings.Join(names, ", "))
}

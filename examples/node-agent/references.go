package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/store"
)

// references follows the ConfigMaps and Secrets that the pods of the node mention, and no others.
// It logs which pods a change concerns. It never shows a value.
type references struct {
	configMaps *mentioned[*corev1.ConfigMap]
	secrets    *mentioned[*corev1.Secret]
}

func newReferences(config *rest.Config, pods *sources.Sources, log logr.Logger) (*references, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100 // as the kubelet; client-go's default is 5 requests a second
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	configMaps := refs.New(refs.FromClient[corev1.ConfigMap](client, "configmaps"), refs.WithLogger(log))
	secrets := refs.New(refs.FromClient[corev1.Secret](client, "secrets"), refs.WithLogger(log))
	return &references{
		configMaps: mentions(configMaps, "ConfigMap", refs.ConfigMapsOf, pods, log),
		secrets:    mentions(secrets, "Secret", refs.SecretsOf, pods, log),
	}, nil
}

// run follows the objects until ctx ends, which is no error.
func (r *references) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 2)
	var all sync.WaitGroup
	for _, run := range []func(context.Context) error{r.configMaps.Run, r.secrets.Run} {
		all.Go(func() { ended <- run(ctx) })
	}
	all.Go(func() { r.configMaps.logChanges(ctx) })
	all.Go(func() { r.secrets.logChanges(ctx) })
	err := <-ended
	stop()
	all.Wait()
	return err
}

// ServeHTTP lists each object that a pod mentions, its state or the reason why that is not known,
// and the pods.
func (r *references) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithTimeout(request.Context(), 5*time.Second)
	defer cancel()
	r.configMaps.list(ctx, w)
	r.secrets.list(ctx, w)
}

// object is a pointer to an object.
type object interface {
	comparable
	store.Object
}

// mentioned is the objects of one kind that pods mention. The owner of a reference is a pod, by its
// namespace and name.
type mentioned[T object] struct {
	*refs.Refs[T]
	kind  string
	names func(*corev1.Pod) refs.Names
	pods  *sources.Sources
	log   logr.Logger
}

func mentions[T object](of *refs.Refs[T], kind string, names func(*corev1.Pod) refs.Names, pods *sources.Sources, log logr.Logger) *mentioned[T] {
	pods.Observe(sources.Observer{Changed: func(changes iter.Seq[sources.PodChange]) {
		for c := range changes {
			if c.New.Pod == nil { // no source has it any more
				of.SetOwner(types.UID(c.Key), nil)
				continue
			}
			of.SetOwner(types.UID(c.Key), names(c.New.Pod))
		}
	}})
	return &mentioned[T]{Refs: of, kind: kind, names: names, pods: pods, log: log}
}

func (m *mentioned[T]) logChanges(ctx context.Context) {
	var none T
	for change := range m.Changes(ctx) {
		what := "changed"
		switch {
		case len(change.Owners) == 0:
			what = "no longer mentioned"
		case change.New == none:
			what = "deleted"
		case change.Old == none:
			what = "there"
		}
		m.log.Info("Reference", "kind", m.kind, "name", change.Name.String(), "is", what, "pods", change.Owners)
	}
}

func (m *mentioned[T]) list(ctx context.Context, w io.Writer) {
	all := map[types.NamespacedName]bool{}
	for _, p := range m.pods.Merged() {
		for _, name := range m.names(p.Pod) {
			all[name] = true
		}
	}
	byName := func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	for _, name := range slices.SortedFunc(maps.Keys(all), byName) {
		state := "is there"
		if _, err := m.Get(ctx, name.Namespace, name.Name); err != nil {
			state = err.Error()
		}
		fmt.Fprintf(w, "%s %s, mentioned by %v: %s\n", m.kind, name, m.Owners(name.Namespace, name.Name), state)
	}
}

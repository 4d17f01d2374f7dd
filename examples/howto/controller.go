package howto

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/controller/leader"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Greet gives each namespace a ConfigMap, while this replica leads.
func Greet(ctx context.Context, config *rest.Config, lease *leader.Election) error {
	config = rest.CopyConfig(config)
	config.Wrap(lease.Gate) // no write without the lease
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	lease.Client = client.CoordinationV1()
	core := client.CoreV1().RESTClient()
	namespaces := informer.New(listwatch.FromClient[corev1.Namespace](core, "namespaces"))
	greetings := informer.New(listwatch.FromClient[corev1.ConfigMap](core, "configmaps"))
	c := controller.Controller[string]{
		Name: "greetings", Workers: 2, Timeout: time.Minute,
		Reconcile: func(ctx context.Context, name string) error {
			_, here := namespaces.Get(name)
			_, greeted := greetings.Get(store.Key(name, "greeting"))
			if !here || greeted {
				return nil
			}
			made, err := client.CoreV1().ConfigMaps(name).Create(ctx, greeting(), metav1.CreateOptions{})
			if err != nil {
				return err // it is tried again
			}
			return greetings.WaitFor(ctx, made) // the next call sees it
		},
		Feeds: []controller.Feed[string]{
			controller.For(namespaces),
			controller.From(greetings, func(g *corev1.ConfigMap) []string { return []string{g.Namespace} }),
		},
		Copies: []controller.Runner{namespaces, greetings},
	}
	return lease.Run(ctx, func(lead, stop context.Context) error {
		c.BaseContext = func() context.Context { return lead }
		return c.Run(stop)
	})
}

func greeting() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "greeting"}, Data: map[string]string{"text": "welcome"}}
}

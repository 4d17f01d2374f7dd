// Package readme_test has the lines of the README's table that this module can compile.
package readme_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/sources"
)

var _ = func(client rest.Interface, node, folder string) {
	_ = sources.New(node, sources.APIServer(client), sources.File(folder))
	_ = refs.New(refs.FromClient[corev1.Secret](client, "secrets"))
}

var _ = func(ctx context.Context, pods *informer.Informer[*corev1.Pod], reconcile func(context.Context, string) error) error {
	return controller.Run(ctx, reconcile, controller.For(pods))
}

var _ = func(set *informer.Set, resource schema.GroupVersionResource, ns string) (*informer.Lease[*corev1.Pod], error) {
	return informer.Acquire[corev1.Pod](set, resource, listwatch.InNamespace(ns))
}

var _ = func(t *testing.T) {
	listwatchtest.New(t, listwatchtest.Pods())
}

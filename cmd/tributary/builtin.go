package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/crd"
	"github.com/tributary-go/tributary/store"
)

// builtins are the resources that kube-apiserver serves without a definition, in the versions in
// which it stores them.
func builtins() []resource {
	pods := builtin.Pods()
	all := []resource{
		named(pods.Kind.GroupVersionResource(), func(s *site, r resource) (running, error) {
			return add(s, r, etcd.New[corev1.Pod](s.client, r.prefix(s.prefix)), pods)
		}),
		named(crd.Definitions().Kind.GroupVersionResource(), definitions),
	}
	for _, r := range builtin.All() {
		all = append(all, anyKind(r))
	}
	return all
}

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// createNamespaces creates the namespaces of a new cluster, as kube-apiserver does.
func (s *site) createNamespaces() error {
	c := apiserver.CollectionOf[store.Object](s.server, namespaces) // nil: read-only, or not served
	if c == nil {
		return nil
	}
	if err := builtin.CreateNamespaces(c); err != nil {
		return fmt.Errorf("create the namespaces of a new cluster: %w", err)
	}
	return nil
}

// complete returns an error as long as a custom resource with namespaces is not served.
func (s *site) complete(ctx context.Context) error {
	if err := s.definitions.WaitFresh(ctx); err != nil {
		return err
	}
	for name, d := range s.definitions.Snapshot().All() {
		served := slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return s.server.Serves(schema.GroupVersionResource{Group: d.Spec.Group, Version: v.Name, Resource: d.Spec.Names.Plural})
		})
		namespaced := d.Spec.Scope == apiextensionsv1.NamespaceScoped
		if namespaced && !served && apihelpers.IsCRDConditionTrue(d, apiextensionsv1.Established) {
			return fmt.Errorf("%s is not served here, or not yet", name)
		}
	}
	return nil
}

// paths are the folders of keys that are not called like their resource, as in kube-apiserver's
// DefaultStorageFactory.
var paths = map[string]string{
	"endpoints": "services/endpoints", "ingresses": "ingress", "nodes": "minions", "replicationcontrollers": "controllers",
	"services": "services/specs", "apiservices": "apiregistration.k8s.io/apiservices", definitionsName: definitionsPath,
}

func named(r schema.GroupVersionResource, add func(*site, resource) (running, error)) resource {
	return resource{GroupVersionResource: r, path: paths[r.Resource], add: add}
}

// eventExpiry is kube-apiserver's --event-ttl.
const eventExpiry = time.Hour

// anyKind serves a kind under the Go type that all kinds have. A collection's code is then in the
// program once, and not once for each of some sixty Go types.
func anyKind(described apiserver.Resource[store.Object]) resource {
	return named(described.Kind.GroupVersionResource(), func(s *site, r resource) (running, error) {
		var options []etcd.Option
		if r.Resource == "events" {
			options = append(options, etcd.WithExpiry(eventExpiry))
		}
		return add(s, r, etcd.NewFor(s.client, r.prefix(s.prefix), described.Kind.Empty, options...), described)
	})
}

// findBuiltin finds a built-in resource by its plural, with its group if it has one.
func findBuiltin(name string) (resource, bool) {
	all := builtins()
	plural, _, grouped := strings.Cut(name, ".")
	i := slices.IndexFunc(all, func(r resource) bool { return r.name() == name || !grouped && r.Resource == plural })
	if i < 0 {
		return resource{}, false
	}
	return all[i], true
}

package main

import (
	"context"
	"fmt"
	"path"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"

	"github.com/tributary-go/tributary/etcd"
	stored "github.com/tributary-go/tributary/etcd/origin"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/store"
)

// resource is a collection that can be served.
type resource struct {
	schema.GroupVersionResource
	path string // of its keys, below the prefix; empty: its plural
	// add makes its collection, which is neither run nor served yet.
	add func(*site, resource) (running, error)
}

// name is plural.group, as kubectl has it.
func (r resource) name() string { return r.GroupResource().String() }

func (r resource) prefix(below string) etcd.Prefix {
	folder := r.path
	if folder == "" {
		folder = r.Resource
	}
	return etcd.Prefix(path.Join(below, folder) + "/")
}

// site is the server with its collections.
type site struct {
	client   *clientv3.Client
	prefix   string
	readOnly bool
	whole    bool // all resources of the prefix are served
	server   *apiserver.Server
	// encryption of values at rest; nil: none.
	encryption encryptionconfig.StaticTransformers
	running    []running // with the program

	definitions *stored.Collection[*definition]
}

func (s *site) orWrite() string {
	if s.readOnly {
		return ""
	}
	return " and write"
}

// running is a collection, whatever its Go type.
type running struct {
	resource
	collection interface {
		Run(context.Context) error
		WaitSynced(context.Context) error
		Status() reflector.Status
		Close()
	}
	serve func(...apiserver.ServeOption)
	// clear deletes all objects, and reports whether some are left that finalizers hold.
	clear func(context.Context) (left bool, err error)
}

// add makes a collection of the objects that a source reads.
func add[T store.Object](s *site, r resource, source *etcd.Source[T], described apiserver.Resource[T]) (running, error) {
	c, err := stored.New(source.With(s.encrypted(r.GroupResource())...), described.Kind, described.Rules)
	if err != nil {
		return running{}, err
	}
	return newRunning(s, r, c, described.View), nil
}

func newRunning[T store.Object](s *site, r resource, c *stored.Collection[T], view apiserver.View[T]) running {
	return running{
		resource: r, collection: c,
		serve: func(options ...apiserver.ServeOption) {
			options = append(options, apiserver.FilledBy(c))
			if s.readOnly {
				options = append(options, apiserver.ReadOnly())
			}
			if r.GroupVersionResource == namespaces && s.whole {
				options = append(options, apiserver.EmptiesNamespaces(s.complete))
			}
			apiserver.ServeCollection(s.server, c.Collection, view, options...)
		},
		clear: func(ctx context.Context) (bool, error) { return clearAll(ctx, c) },
	}
}

// clearAll deletes all objects of a collection.
func clearAll[T store.Object](ctx context.Context, c *stored.Collection[T]) (left bool, err error) {
	if err := c.WaitFresh(ctx); err != nil {
		return false, err
	}
	if skipped := c.Status().Skipped; skipped > 0 {
		return false, fmt.Errorf("%d objects cannot be read", skipped)
	}
	for _, obj := range c.Snapshot().All() {
		if obj.GetDeletionTimestamp() != nil {
			continue
		}
		_, err := c.Delete(obj.GetNamespace(), obj.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) { // another writer was faster
			return false, err
		}
	}
	err = c.WaitFresh(ctx)
	return c.Snapshot().Len() > 0, err
}

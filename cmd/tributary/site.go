package main

import (
	"context"
	"fmt"
	"path"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// resource is a collection that can be served.
type resource struct {
	group, version, plural, kind string

	shortNames    []string
	categories    []string
	clusterScoped bool
	path          string // of its keys, below the prefix; empty: plural
	// add makes its collection, which nobody runs and serves yet.
	add func(*site, resource) (running, error)
}

// name is plural.group, as kubectl has it.
func (r resource) name() string { return r.groupVersionResource().GroupResource().String() }

func (r resource) groupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.group, Version: r.version, Resource: r.plural}
}

func (r resource) prefix(below string) etcd.Prefix {
	folder := r.path
	if folder == "" {
		folder = r.plural
	}
	return etcd.Prefix(path.Join(below, folder) + "/")
}

// site is the server with what it serves.
type site struct {
	client   *clientv3.Client
	prefix   string
	readOnly bool
	server   *apiserver.Server
	running  []running // with the program

	definitions *etcd.Collection[*definition]
}

// running is a collection, whatever its Go type.
type running struct {
	resource
	collection interface {
		Run(context.Context) error
		WaitSynced(context.Context) error
		Status() reflector.Status
	}
	serve func(...apiserver.ServeOption)
	// clear deletes all objects, and reports whether some are left that finalizers hold.
	clear func(context.Context) (left bool, err error)
}

// add makes a collection of what a source reads.
func add[T store.Object](s *site, r resource, source *etcd.Source[T], description watchcache.Resource[T]) (running, error) {
	description.Group, description.Version, description.Plural, description.Kind = r.group, r.version, r.plural, r.kind
	description.ShortNames, description.Categories = r.shortNames, r.categories
	description.ClusterScoped = r.clusterScoped
	c, err := etcd.NewCollection(source, description)
	if err != nil {
		return running{}, err
	}
	return newRunning(s, r, c), nil
}

func newRunning[T store.Object](s *site, r resource, c *etcd.Collection[T]) running {
	return running{
		resource: r, collection: c,
		serve: func(options ...apiserver.ServeOption) {
			options = append(options, apiserver.FilledBy(c), apiserver.WarnStale(), apiserver.ParkIdleWatches())
			if s.readOnly {
				apiserver.ServeCache(s.server, c.Cache(), options...)
			} else {
				apiserver.ServeCollection(s.server, c.Collection, options...)
			}
		},
		clear: func(ctx context.Context) (bool, error) { return clearAll(ctx, c) },
	}
}

// clearAll deletes all objects of a collection.
func clearAll[T store.Object](ctx context.Context, c *etcd.Collection[T]) (left bool, err error) {
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
		if err != nil && !apierrors.IsNotFound(err) { // somebody else was faster
			return false, err
		}
	}
	err = c.WaitFresh(ctx)
	return c.Snapshot().Len() > 0, err
}

// object is an object of any kind. A collection's code is then in the program once, and not once
// for each of some sixty Go types.
type object interface {
	runtime.Object
	metav1.Object
}

type anyKind = watchcache.Resource[object]

// addAny begins to serve objects that empty makes.
func addAny(s *site, r resource, empty func() object, description anyKind, options ...etcd.Option) (running, error) {
	description.New = empty
	return add(s, r, etcd.NewFor(s.client, r.prefix(s.prefix), empty, options...), description)
}

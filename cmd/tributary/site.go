package main

import (
	"context"
	"path"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver"
)

// resource is a collection that can be served.
type resource struct {
	group, version, plural, kind string

	shortNames    []string
	categories    []string
	clusterScoped bool
	path          string // of its keys, below the prefix; empty: plural
	// add begins to serve it.
	add func(*site, resource) error
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
	running  []running
}

// running is a served collection, whatever its Go type.
type running struct {
	resource
	collection interface {
		Run(context.Context) error
		WaitSynced(context.Context) error
		Status() reflector.Status
	}
}

// add begins to serve what a source reads.
func add[T store.Object](s *site, r resource, source *etcd.Source[T], description watchcache.Resource[T]) error {
	description.Group, description.Version, description.Plural, description.Kind = r.group, r.version, r.plural, r.kind
	description.ShortNames, description.Categories = r.shortNames, r.categories
	description.ClusterScoped = r.clusterScoped
	c, err := etcd.NewCollection(source, description)
	if err != nil {
		return err
	}
	if s.readOnly {
		apiserver.ServeCache(s.server, c.Cache(), apiserver.FilledBy(c), apiserver.WarnStale())
	} else {
		apiserver.ServeCollection(s.server, c.Collection, apiserver.FilledBy(c), apiserver.WarnStale())
	}
	s.running = append(s.running, running{r, c})
	return nil
}

// object is an object of any kind. A collection's code is then in the program once, and not once
// for each of some sixty Go types.
type object interface {
	runtime.Object
	metav1.Object
}

type anyKind = watchcache.Resource[object]

// addAny begins to serve objects that empty makes.
func addAny(s *site, r resource, empty func() object, description anyKind, options ...etcd.Option) error {
	description.New = empty
	return add(s, r, etcd.NewFor(s.client, r.prefix(s.prefix), empty, options...), description)
}

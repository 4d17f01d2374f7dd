package mapper

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Mapper knows the resources of one server. Make it with [New]. It asks the server at the first
// name, and again if it does not know one, such as that of a new CRD. Each question takes at most
// the config's Timeout, or 32 s. All methods are safe for concurrent use.
type Mapper struct {
	config  *rest.Config
	mapper  meta.RESTMapper // client-go's, with short names
	refresh func()

	mu      sync.Mutex
	clients map[schema.GroupVersion]rest.Interface
}

// New makes a mapper of the server of config. It sends nothing.
func New(config *rest.Config) (*Mapper, error) {
	if config == nil {
		return nil, errors.New("mapper: New: the config is nil: rest.InClusterConfig makes one")
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("mapper: %w", err)
	}
	known := memory.NewMemCacheClient(client)
	deferred := restmapper.NewDeferredDiscoveryRESTMapper(known)
	return &Mapper{
		config: config, mapper: restmapper.NewShortcutExpander(deferred, known, nil), refresh: deferred.Reset,
		clients: map[schema.GroupVersion]rest.Interface{},
	}, nil
}

// Resource returns the resource of a name, for informer.Acquire. It blocks while it asks the
// server. If the server has no such resource, meta.IsNoMatchError is true of the error.
func (m *Mapper) Resource(name string) (schema.GroupVersionResource, error) {
	found, err := m.find(name)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return found.Resource, nil
}

func (m *Mapper) find(name string) (*meta.RESTMapping, error) {
	found, err := m.mapping(name)
	if meta.IsNoMatchError(err) {
		m.refresh()
		found, err = m.mapping(name)
	}
	if err != nil {
		return nil, fmt.Errorf("mapper: %q: %w", name, err)
	}
	return found, nil
}

// mapping reads "name.version.group" first, as kubectl does: the version may be a part of the
// group.
func (m *Mapper) mapping(name string) (*meta.RESTMapping, error) {
	versioned, unversioned := schema.ParseResourceArg(name)
	kind, err := schema.GroupVersionKind{}, error(nil)
	if versioned != nil {
		kind, err = m.mapper.KindFor(*versioned)
	}
	if versioned == nil || meta.IsNoMatchError(err) {
		kind, err = m.mapper.KindFor(unversioned.WithVersion(""))
	}
	if err != nil {
		return nil, err
	}
	return m.mapper.RESTMapping(kind.GroupKind(), kind.Version)
}

// ListWatch reads the collection of a name; see [listwatch.FromClient] for O and options. It blocks
// as [Mapper.Resource] does, and fails if a namespace is given for a resource that has none.
func ListWatch[O any, T interface {
	*O
	store.Object
}](m *Mapper, name string, options ...listwatch.Option) (*listwatch.ListWatch[T], error) {
	found, err := m.find(name)
	if err != nil {
		return nil, err
	}
	if namespace := listwatch.ScopeOf(options...).Namespace(); namespace != "" && found.Scope.Name() == meta.RESTScopeNameRoot {
		return nil, fmt.Errorf("mapper: %q: %s have no namespace: remove InNamespace(%q)", name, found.Resource.Resource, namespace)
	}
	client, err := m.client(found.Resource.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("mapper: %q: %w", name, err)
	}
	return listwatch.FromClient[O, T](client, found.Resource.Resource, options...), nil
}

// client returns the REST client of a group version, one for all its resources.
func (m *Mapper) client(version schema.GroupVersion) (rest.Interface, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if client, ok := m.clients[version]; ok {
		return client, nil
	}
	client, err := listwatch.NewRESTClient(m.config, version)
	if err == nil {
		m.clients[version] = client
	}
	return client, err
}

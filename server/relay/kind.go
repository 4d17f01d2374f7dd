package relay

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// kind is a resource of the upstream that can be copied.
type kind struct {
	metav1.APIResource
	resource schema.GroupVersionResource
	typed    bool             // its objects have Go types
	columns  bool             // its tables are those of the upstream
	fields   sets.Set[string] // that selectors may use
	fill     func(filling) (filler, error)
}

// filling has the parts of a copy that do not follow from its kind.
type filling struct {
	client   rest.Interface // of the group version
	scope    Scope
	cache    []watchcache.Option
	reflect  []reflector.Option
	journals string // the folder; empty: none
	upstream string // its name
}

// filler is a cache and the reflector that fills it, whatever the Go type.
type filler struct {
	run     func(context.Context) error
	synced  <-chan struct{}
	status  func() reflector.Status
	journal func() watchcache.JournalStatus
	serve   func(*apiserver.Server)
	close   func()
}

// answers reports whether a copy can answer a read as the upstream does.
func (k *kind) answers(r read) bool {
	if r.asTable && !k.columns {
		return false
	}
	unknown := func(r fields.Requirement) bool { return !k.fields.Has(r.Field) }
	return r.options.FieldSelector == nil || !slices.ContainsFunc(r.options.FieldSelector.Requirements(), unknown)
}

// newKind describes a resource. typed says that the Go types of built-in kinds have all fields.
func newKind(resource schema.GroupVersionResource, found metav1.APIResource, typed bool) *kind {
	k := &kind{APIResource: found, resource: resource, fields: sets.New(metav1.ObjectNameField)}
	if found.Namespaced {
		k.fields.Insert("metadata.namespace")
	}
	pods := builtin.Pods()
	if typed && resource == pods.Kind.GroupVersionResource() {
		fillWith(k, pods)
		return k
	}
	if known, ok := builtins()[resource]; typed && ok && known.Kind.Kind == found.Kind && known.Kind.ClusterScoped != found.Namespaced {
		fillWith(k, known)
		return k
	}
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(resource.GroupVersion().WithKind(found.Kind))
	fillWith(k, apiserver.Resource[store.Object]{Kind: watchcache.Kind[store.Object]{
		Group: resource.Group, Version: resource.Version, Plural: resource.Resource, Kind: found.Kind,
		ClusterScoped: !found.Namespaced, New: func() store.Object { return example.NewEmptyInstance().(store.Object) },
	}})
	k.typed = false
	return k
}

// isBuiltin reports whether a resource is of the API server's own kinds.
func isBuiltin(resource schema.GroupVersionResource) bool {
	_, known := builtins()[resource]
	return known || resource == builtin.Pods().Kind.GroupVersionResource()
}

// builtins are the built-in kinds but pods.
var builtins = sync.OnceValue(func() map[schema.GroupVersionResource]apiserver.Resource[store.Object] {
	all := map[schema.GroupVersionResource]apiserver.Resource[store.Object]{}
	for _, r := range builtin.All() {
		all[r.Kind.GroupVersionResource()] = r
	}
	return all
})

// fillWith has copies of the kind made as described.
func fillWith[T store.Object](k *kind, described apiserver.Resource[T]) {
	k.typed, k.columns = true, len(described.View.Columns) > 0
	for _, field := range described.Kind.Fields {
		k.fields.Insert(field.Label)
	}
	k.fill = func(f filling) (filler, error) {
		reading := f.scope.reading()
		example := described.Kind.Empty()
		if _, isDocument := any(example).(*unstructured.Unstructured); isDocument {
			example.GetObjectKind().SetGroupVersionKind(described.Kind.GroupVersionKind())
		}
		proof := watchcache.ServerOf(listwatch.FromClient[metav1.PartialObjectMetadata](f.client, k.resource.Resource, reading...))
		cache, err := watchcache.NewCache(described.Kind, append(slices.Clone(f.cache),
			watchcache.WithUpstream(proof), watchcache.WithBookmarkFirst())...)
		if err != nil {
			return filler{}, err
		}
		journal, err := openJournal(k, f, cache)
		if err != nil {
			return filler{}, err
		}
		source := listwatch.FromClientLike(f.client, k.resource.Resource, example, reading...)
		filled := reflector.New(source, cache, append(slices.Clone(f.reflect), reflector.WithResume())...)
		return filler{
			run: func(ctx context.Context) error {
				var written sync.WaitGroup
				written.Go(func() { _ = journal.Run(ctx) }) // it is run once
				defer written.Wait()
				return filled.Run(ctx)
			},
			synced: filled.Synced(), status: filled.Status, journal: journal.Status, close: cache.Close,
			serve: func(s *apiserver.Server) {
				apiserver.ServeCache(s, cache, described.View, apiserver.FilledBy(filled), apiserver.RefuseForgottenWatches())
			},
		}, nil
	}
}

// journal is a watchcache.Journal, or none.
type journal interface {
	Run(context.Context) error
	Status() watchcache.JournalStatus
}

type noJournal struct{}

func (noJournal) Run(context.Context) error        { return nil }
func (noJournal) Status() watchcache.JournalStatus { return watchcache.JournalStatus{} }

// openJournal restores a cache from its journal. Secrets have none: they stay off the disk.
func openJournal[T store.Object](k *kind, f filling, cache *watchcache.Cache[T]) (journal, error) {
	if f.journals == "" || k.resource.GroupResource() == (schema.GroupResource{Resource: "secrets"}) {
		return noJournal{}, nil
	}
	form := "documents"
	if k.typed {
		form = "Go types"
	}
	return watchcache.OpenJournal(cache, f.journals, f.upstream+" "+f.scope.String()+" as "+form)
}

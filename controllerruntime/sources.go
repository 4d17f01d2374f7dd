package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	goruntime "runtime"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// object is the objects of all collections: their Go types are known at run time only.
type object = clientgo.Object

// sources makes the sources of collections.
type sources struct {
	config  *rest.Config
	client  *http.Client
	scheme  *runtime.Scheme
	codecs  serializer.CodecFactory
	mapper  meta.RESTMapper
	onError toolscache.WatchErrorHandlerWithContext // may be nil
	// scope is the cache's own: with UnsafeDisableDeepCopy, a write into an object must not show in
	// another cache.
	scope *byte
}

func newSources(config *rest.Config, options cache.Options) (sources, error) {
	if config == nil {
		return sources{}, errors.New("the config is nil")
	}
	s := sources{
		config: rest.CopyConfig(config), client: options.HTTPClient, scheme: options.Scheme, mapper: options.Mapper,
		onError: options.DefaultWatchErrorHandler, scope: new(byte),
	}
	if s.config.UserAgent == "" {
		s.config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	var err error
	if s.client == nil {
		if s.client, err = rest.HTTPClientFor(s.config); err != nil {
			return s, err
		}
	}
	if s.scheme == nil {
		s.scheme = scheme.Scheme
	}
	s.codecs = serializer.NewCodecFactory(s.scheme)
	if s.mapper == nil {
		s.mapper, err = apiutil.NewDynamicRESTMapper(s.config, s.client)
	}
	return s, err
}

// logger is controller-runtime's, which a program may set late.
func logger() logr.Logger { return log.Log.WithName("cache") }

// of returns the source of one namespace of a kind, or of the whole kind.
func (s sources) of(k kind, example object, mapping *meta.RESTMapping, namespace string, config cache.Config) (listwatch.ListerWatcher[object], error) {
	client, err := s.clientOf(k)
	if err != nil {
		return nil, err
	}
	if namespace == "" && config.FieldSelector != nil && !isRoot(mapping) {
		// A program with the rights of one namespace cannot list all of them.
		namespace, _ = config.FieldSelector.RequiresExactMatch("metadata.namespace")
	}
	var options []listwatch.Option
	if config.FieldSelector != nil {
		options = append(options, listwatch.Fields(config.FieldSelector))
	}
	return s.by(client, k, example, mapping, namespace, config, options...), nil
}

func (s sources) clientOf(k kind) (rest.Interface, error) {
	return apiutil.RESTClientForGVK(k.GroupVersionKind, false, k.form != typed, s.config, s.codecs, s.client)
}

// by returns a source that requests as options say, and as config says but for its field selector.
func (s sources) by(
	client rest.Interface, k kind, example object, mapping *meta.RESTMapping, namespace string, config cache.Config,
	options ...listwatch.Option,
) listwatch.ListerWatcher[object] {
	options = append(options, listwatch.InNamespace(namespace))
	if config.LabelSelector != nil {
		options = append(options, listwatch.Labels(config.LabelSelector))
	}
	strips := stripsManagedFields(config.Transform)
	if strips {
		options = append(options, listwatch.DropManagedFields())
	}
	noBookmarks := config.EnableWatchBookmarks != nil && !*config.EnableWatchBookmarks
	if noBookmarks { // a watch list ends its initial state by a bookmark
		options = append(options, listwatch.WithoutWatchList())
	}
	var source listwatch.ListerWatcher[object] = listwatch.FromClientLike(sharing.Scoped{Interface: client, Scope: s.scope}, mapping.Resource.Resource, example, options...)
	if k.form == metadata {
		source = listwatch.Project(source, ofKind(k.GroupVersionKind), listwatch.ReadOnly())
	}
	if config.Transform != nil && !strips {
		source = listwatch.Project(source, transformed(config.Transform))
	}
	if noBookmarks {
		source = withoutBookmarks{source}
	}
	if s.onError != nil {
		source = clientgo.WithWatchErrors(source, example, func(ctx context.Context, r *toolscache.Reflector, err error) {
			s.onError(log.IntoContext(ctx, logger()), r, err)
		})
	}
	return source
}

// stripsManagedFields recognises controller-runtime's transform: the decoder can do its work. The
// place in the source tells: inlining gives each caller of TransformStripManagedFields its own
// function.
func stripsManagedFields(transform toolscache.TransformFunc) bool {
	return transform != nil && placeOf(transform) == placeOf(cache.TransformStripManagedFields())
}

func placeOf(transform toolscache.TransformFunc) string {
	entry := reflect.ValueOf(transform).Pointer()
	file, line := goruntime.FuncForPC(entry).FileLine(entry)
	return fmt.Sprint(file, ":", line)
}

// ofKind states the kind in metadata, which comes from the server as that of a
// PartialObjectMetadata. All versions of an object share its parts.
func ofKind(gvk schema.GroupVersionKind) func(object) object {
	apiVersion, name := gvk.ToAPIVersionAndKind()
	return func(obj object) object {
		out := *obj.(*metav1.PartialObjectMetadata)
		out.APIVersion, out.Kind = apiVersion, name
		return &out
	}
}

// transformed calls a program's transform. An object that it refuses is reported as unusable.
func transformed(transform toolscache.TransformFunc) func(object) object {
	return func(obj object) object {
		key := store.KeyOf(obj)
		changed, err := transform(obj)
		out, ok := changed.(object)
		switch {
		case err != nil:
			logger().Error(err, "A transform fails", "object", key)
			return nil
		case !ok:
			logger().Info("A transform returns no object", "object", key)
			return nil
		}
		return out
	}
}

// withoutBookmarks asks for none.
type withoutBookmarks struct {
	listwatch.ListerWatcher[object]
}

func (w withoutBookmarks) Watch(ctx context.Context, request metav1.ListOptions) iter.Seq2[listwatch.Event[object], error] {
	request.AllowWatchBookmarks = false
	return w.ListerWatcher.Watch(ctx, request)
}

func (w withoutBookmarks) IsWatchListSemanticsUnSupported() bool { return true }

// Sharing implements the method of a listwatch.ListWatch.
func (w withoutBookmarks) Sharing() (none listwatch.SharingStats) {
	if source, ok := w.ListerWatcher.(interface{ Sharing() listwatch.SharingStats }); ok {
		return source.Sharing()
	}
	return none
}

func (w withoutBookmarks) Holding(held func(key string) (object, bool)) listwatch.ListerWatcher[object] {
	holder, ok := w.ListerWatcher.(listwatch.Holder[object])
	if !ok {
		return w
	}
	return withoutBookmarks{holder.Holding(held)}
}

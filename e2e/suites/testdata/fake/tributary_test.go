package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/crd"
	"github.com/tributary-go/tributary/store"
)

// asked reports whether a spec has sent a request to a server of ours.
var asked atomic.Bool

var _ = AfterEach(func() {
	if asked.Swap(false) {
		AddReportEntry("tributary made: server")
	}
})

// unregistered are the kinds that the specs use without a word to the builder.
func unregistered() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{
		{Group: "custom", Version: "v1", Kind: "FakeResource"},
		{Group: "custom", Version: "v1", Kind: "Version"},
		{Group: "foo", Version: "v1", Kind: "Foo"},
	}
	for i := range 15 {
		kinds = append(kinds, schema.GroupVersionKind{Group: "custom", Version: fmt.Sprintf("v%d", i+1), Kind: "Image"})
	}
	return kinds
}

// Build makes controller-runtime's real client, of a server of ours that holds the builder's
// objects. A tracker or type converters are parts of the fake: with them the fake is made.
func (f *ClientBuilder) Build() client.WithWatch {
	if f.isBuilt || f.objectTracker != nil || len(f.typeConverters) > 0 {
		return f.clientBuild()
	}
	f.isBuilt = true
	if f.scheme == nil {
		f.scheme = clientgoscheme.Scheme
	}
	o := newOrigin(f)
	for _, obj := range f.initObject {
		o.add(obj)
	}
	for _, list := range f.initLists {
		o.add(list)
	}
	for _, obj := range f.initRuntimeObjects {
		o.add(obj)
	}
	listener := httptest.NewServer(http.HandlerFunc(o.serve)) // lasts until the process ends
	made, err := client.NewWithWatch(&rest.Config{Host: listener.URL, QPS: -1},
		client.Options{Scheme: f.scheme, Mapper: f.restMapper})
	if err != nil {
		panic(err)
	}
	if f.interceptorFuncs != nil {
		made = interceptor.NewClient(made, *f.interceptorFuncs)
	}
	return made
}

// origin is a server of ours, and how an object of each kind is put into it.
type origin struct {
	server  *apiserver.Server
	scheme  *runtime.Scheme
	creates map[schema.GroupVersionKind]func(runtime.Object) error
}

func newOrigin(f *ClientBuilder) *origin {
	server, err := apiserver.NewServer()
	if err != nil {
		panic(err)
	}
	o := &origin{server: server, scheme: f.scheme, creates: map[schema.GroupVersionKind]func(runtime.Object) error{}}
	serve(o, builtin.Pods())
	for _, r := range builtin.All() {
		if r.Kind.Kind != "Namespace" || slices.ContainsFunc(f.initObject, isNamespace) {
			serve(o, r) // without namespaces, any is there: the fake has no others
		}
	}
	custom := unregistered()
	for gvk := range f.scheme.AllKnownTypes() {
		if !clientgoscheme.Scheme.Recognizes(gvk) && gvk.Version != runtime.APIVersionInternal {
			custom = append(custom, gvk)
		}
	}
	for _, gvk := range custom {
		if _, known := o.creates[gvk]; known {
			continue
		}
		r, err := crd.Resource(o.definition(gvk, f.withStatusSubresource))
		if err != nil {
			panic(err)
		}
		serve(o, r)
	}
	return o
}

func isNamespace(obj client.Object) bool {
	_, ok := obj.(*corev1.Namespace)
	return ok
}

// definition is of a custom resource without a schema. As in the fake, a kind has the subresource
// status if the builder says so.
func (o *origin) definition(gvk schema.GroupVersionKind, withStatus []client.Object) *apiextensionsv1.CustomResourceDefinition {
	resource, _ := meta.UnsafeGuessKindToResource(gvk)
	keep := true
	v := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: gvk.Version, Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep},
		},
		Subresources: &apiextensionsv1.CustomResourceSubresources{},
	}
	for _, obj := range withStatus {
		if with, err := apiutil.GVKForObject(obj, o.scheme); err == nil && with == gvk {
			v.Subresources.Status = &apiextensionsv1.CustomResourceSubresourceStatus{}
		}
	}
	scope := apiextensionsv1.ClusterScoped
	if gvk.Kind == "ChaosPod" {
		scope = apiextensionsv1.NamespaceScoped
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: resource.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: scope,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: resource.Resource, Kind: gvk.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{v},
		},
	}
}

func serve[T store.Object](o *origin, r apiserver.Resource[T]) {
	c := apiserver.Serve(o.server, r)
	o.creates[r.Kind.GroupVersionKind()] = func(obj runtime.Object) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return err
		}
		content["apiVersion"], content["kind"] = r.Kind.GroupVersionKind().ToAPIVersionAndKind()
		encoded, err := json.Marshal(content)
		if err != nil {
			return err
		}
		into := r.Kind.Empty()
		if err := json.Unmarshal(encoded, into); err != nil {
			return err
		}
		into.SetResourceVersion("")
		if into.GetNamespace() == "" && !r.Kind.ClusterScoped {
			into.SetNamespace(metav1.NamespaceDefault)
		}
		_, err = c.Create(into)
		return err
	}
}

// add puts an object, or the objects of a list, into the server, as the owner of the collection.
func (o *origin) add(obj runtime.Object) {
	if meta.IsListType(obj) {
		if err := meta.EachListItem(obj, func(item runtime.Object) error { o.add(item); return nil }); err != nil {
			panic(err)
		}
		return
	}
	gvk, err := apiutil.GVKForObject(obj, o.scheme)
	if err != nil {
		gvk = obj.GetObjectKind().GroupVersionKind()
	}
	create, ok := o.creates[gvk]
	if !ok {
		panic("no collection of " + gvk.String())
	}
	if err := create(obj); err != nil {
		panic(err)
	}
}

func (o *origin) serve(w http.ResponseWriter, r *http.Request) {
	asked.Store(true)
	o.server.ServeHTTP(w, r)
}

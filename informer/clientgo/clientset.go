package clientgo

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/listwatch"
)

// FromClientset is [NewInformer] for a generated clientset: client-go's, or one of custom
// resources. It makes the informer of the resource with the Go type of example, a pointer such as
// &corev1.Pod{}. [Factory] puts such informers into a generated factory.
//
// Options narrow the collection and say how it is read, as in [listwatch.FromClient]; the namespace
// is ignored in cluster scope. Objects share memory and are read-only. A transform gets a copy, and
// the parts that it leaves as they were share memory again. A fake clientset is read through its
// functions. A clientset whose IsWatchListSemanticsUnSupported returns true, as that of fakes, is
// asked for no watch list.
//
// It panics if the clientset is nil or has no such resource: [HasResource] tells.
func FromClientset(clientset any, example runtime.Object, resync time.Duration, optionList ...listwatch.Option) cache.SharedIndexInformer {
	source, shares := sourceOf("FromClientset", clientset, example, optionList)
	return newInformer(source, shares, example, resync).asClientGo()
}

// SourceOf is the source that an informer of [FromClientset] reads. [FromSource] takes it with
// options of the informer.
func SourceOf(clientset any, example runtime.Object, optionList ...listwatch.Option) listwatch.ListerWatcher[Object] {
	source, _ := sourceOf("SourceOf", clientset, example, optionList)
	return source
}

func sourceOf(
	name string, clientset any, example runtime.Object, optionList []listwatch.Option,
) (source listwatch.ListerWatcher[Object], shares bool) {
	r, ok := resourceOf(clientset, reflect.TypeOf(example))
	if !ok {
		panic(fmt.Sprintf("clientgo: %s: a %T has no resource of %T", name, clientset, example))
	}
	namespace := listwatch.ScopeOf(optionList...).Namespace()
	if !r.namespaced {
		namespace = metav1.NamespaceAll
	}
	options := append(optionList[:len(optionList):len(optionList)], listwatch.InNamespace(namespace), adapters.AsClientGo.(listwatch.FuncsOption))
	if !watchlist.Supported(clientset) {
		options = append(options, listwatch.WithoutWatchList())
	}
	if !null.Is(r.client) {
		object := reflect.New(reflect.TypeOf(example).Elem()).Interface().(Object)
		return listwatch.FromClientLike(r.client, r.name, object, options...), true
	}
	return r.functions(namespace, options), false
}

// FromSource is [NewInformer] for a source of package listwatch. Objects share memory and are
// read-only, so a transform gets a copy. The source's objects have the type of example; nil accepts
// any. Options are the informer's own, such as [informer.WithStore].
func FromSource(
	source listwatch.ListerWatcher[Object], example runtime.Object, resync time.Duration, optionList ...informer.Option,
) cache.SharedIndexInformer {
	return newInformer(source, true, example, resync, optionList...).asClientGo()
}

// HasResource reports whether a generated clientset has a resource of the Go type of example.
func HasResource(clientset any, example runtime.Object) bool {
	_, ok := resourceOf(clientset, reflect.TypeOf(example))
	return ok
}

// resource is the resource of a Go type in a generated clientset.
type resource struct {
	name       string         // the plural
	client     rest.Interface // of its group version; a nil pointer in a fake
	namespaced bool
	of         reflect.Value // the method that makes the resource's client, such as Pods
}

// resourceOf finds a type by the shape of generated clientsets: clientset.CoreV1().Pods("ns") has a
// method Get that returns a *corev1.Pod. It calls no method but that of the type's own group.
func resourceOf(clientset any, of reflect.Type) (resource, bool) {
	set := reflect.ValueOf(clientset)
	if null.Is(clientset) || of == nil {
		return resource{}, false
	}
	for i := range set.NumMethod() {
		group := set.Method(i)
		if shape := group.Type(); shape.NumIn() != 0 || shape.NumOut() != 1 || shape.Out(0).Kind() != reflect.Interface {
			continue
		}
		name, namespaced, ok := getterOf(group.Type().Out(0), of)
		if !ok {
			continue
		}
		client := group.Call(nil)[0]
		restClient, ok := client.Interface().(interface{ RESTClient() rest.Interface })
		if !ok {
			continue
		}
		return resource{strings.ToLower(name), restClient.RESTClient(), namespaced, client.MethodByName(name)}, true
	}
	return resource{}, false
}

// getterOf finds the method of a group's client that makes the client of a type.
func getterOf(group, of reflect.Type) (name string, namespaced, ok bool) {
	for i := range group.NumMethod() {
		m := group.Method(i)
		if m.Type.NumOut() != 1 || m.Type.Out(0).Kind() != reflect.Interface || m.Type.NumIn() > 1 ||
			m.Type.NumIn() == 1 && m.Type.In(0).Kind() != reflect.String {
			continue
		}
		if get, has := m.Type.Out(0).MethodByName("Get"); has && get.Type.NumOut() == 2 && get.Type.Out(0) == of {
			return m.Name, m.Type.NumIn() == 1, true
		}
	}
	return "", false, false
}

// functions reads through the resource's List and Watch.
func (r resource) functions(namespace string, optionList []listwatch.Option) listwatch.ListerWatcher[Object] {
	var in []reflect.Value
	if r.namespaced {
		in = append(in, reflect.ValueOf(namespace))
	}
	client := r.of.Call(in)[0]
	call := func(method string, ctx context.Context, request metav1.ListOptions) (any, error) {
		out := client.MethodByName(method).Call([]reflect.Value{reflect.ValueOf(ctx), reflect.ValueOf(request)})
		err, _ := out[1].Interface().(error)
		return out[0].Interface(), err
	}
	var options []listwatch.FuncsOption
	for _, option := range optionList {
		if of, ok := option.(listwatch.FuncsOption); ok {
			options = append(options, of)
		}
	}
	return listwatch.FromFuncs[Object](
		func(ctx context.Context, request metav1.ListOptions) (runtime.Object, error) {
			list, err := call("List", ctx, request)
			if err != nil {
				return nil, err
			}
			return list.(runtime.Object), nil
		},
		func(ctx context.Context, request metav1.ListOptions) (watch.Interface, error) {
			w, err := call("Watch", ctx, request)
			if err != nil {
				return nil, err
			}
			return w.(watch.Interface), nil
		}, options...)
}

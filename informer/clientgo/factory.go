package clientgo

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/listwatch"
)

// Factory puts informers of [FromClientset] into a generated factory, one for each type of
// examples, and returns the factory. It is for the factories of custom resources; for the built-in
// types there is package informers.
//
//	factory := clientgo.Factory(externalversions.NewSharedInformerFactory(clientset, time.Hour),
//		[]runtime.Object{&v1.Widget{}})
//	factory.Example().V1().Widgets().Lister() // reads our informer
//
// Name the types that the program uses: Start starts them all, and other types get client-go's
// informers. A later call on the same factory adds types. The factory's namespace, transform and
// intervals of redelivery hold for ours too, and so do the selectors of its tweak of list options;
// see [Tweak]. Options narrow further. If the factory has an InformerName, ours have client-go's
// metrics under it, except of a fake clientset.
//
// It panics as FromClientset does, and if the factory already has an informer of a type. It also
// panics if it cannot read the factory's namespace and tweak, unless there are options: ours would
// read objects that the program leaves out.
func Factory[F generated[N], N ~func(C, time.Duration) cache.SharedIndexInformer, C any](
	factory F, examples []runtime.Object, optionList ...listwatch.Option,
) F {
	namespace, tweak, ok := narrowed(factory)
	if !ok && len(optionList) == 0 {
		panic(fmt.Sprintf("clientgo: Factory: the namespace and the tweak of list options of a %T cannot be read: "+
			"give the factory as its constructor returns it, or options, such as listwatch.InNamespace", factory))
	}
	optionList = slices.Concat([]listwatch.Option{listwatch.InNamespace(namespace)}, optionList, []listwatch.Option{Tweak(tweak)})
	for _, example := range examples {
		made := factory.InformerFor(example, func(client C, resync time.Duration) cache.SharedIndexInformer {
			made := FromClientset(client, example, resync, optionList...)
			if r, _ := resourceOf(client, reflect.TypeOf(example)); !null.Is(r.client) {
				made.(named).PublishAs(factory, r.client.APIVersion().WithResource(r.name))
			}
			return made
		})
		if _, ours := made.(named); !ours {
			panic(fmt.Sprintf("clientgo: Factory: the factory has an informer of %T already: call Factory first", example))
		}
	}
	return factory
}

// Tweak selects as tweak does, a function of the form that client-go's factories take, such as that
// of NewFilteredPodInformer. tweak is called once. The label and field selectors that it sets
// narrow those of the options before. A nil tweak narrows nothing. Tweak panics if they are no
// selectors, or if tweak sets another field, such as a ShardSelector, which would have no effect:
// the program would act on more than it asked for. Bookmarks are asked for in any case.
func Tweak(tweak func(*metav1.ListOptions)) listwatch.FuncsOption {
	var set metav1.ListOptions
	if tweak != nil {
		tweak(&set)
	}
	if _, err := labels.Parse(set.LabelSelector); err != nil {
		panic(fmt.Errorf("clientgo: Tweak: label selector %q: %w", set.LabelSelector, err))
	}
	if _, err := fields.ParseSelector(set.FieldSelector); err != nil {
		panic(fmt.Errorf("clientgo: Tweak: field selector %q: %w", set.FieldSelector, err))
	}
	for v, i := reflect.ValueOf(set), 0; i < v.NumField(); i++ {
		switch name := v.Type().Field(i).Name; name {
		case "LabelSelector", "FieldSelector", "AllowWatchBookmarks":
		default:
			if !v.Field(i).IsZero() {
				panic(fmt.Errorf("clientgo: Tweak: %s has no effect here: leave it out; selectors narrow, and an option of listwatch does the rest", name))
			}
		}
	}
	return adapters.Narrow(set.LabelSelector, set.FieldSelector).(listwatch.FuncsOption)
}

// narrowed reads how a factory narrows its informers, from the fields of all generated factories.
func narrowed(factory any) (namespace string, tweak func(*metav1.ListOptions), ok bool) {
	made := reflect.ValueOf(factory)
	if made.Kind() != reflect.Pointer || made.IsNil() || made.Elem().Kind() != reflect.Struct {
		return "", nil, false
	}
	of, tweaks := made.Elem().FieldByName("namespace"), made.Elem().FieldByName("tweakListOptions")
	form := reflect.TypeOf(tweak)
	if !of.IsValid() || of.Kind() != reflect.String || !tweaks.IsValid() || !tweaks.CanConvert(form) {
		return "", nil, false
	}
	// The field is not exported, so reflect reads it only by its address.
	tweak = reflect.NewAt(tweaks.Type(), tweaks.Addr().UnsafePointer()).Elem().Convert(form).Interface().(func(*metav1.ListOptions))
	return of.String(), tweak, true
}

// generated is the part of a generated factory that takes constructors. N is its own type of them.
type generated[N any] interface {
	InformerFor(example runtime.Object, constructor N) cache.SharedIndexInformer
}

// named is an informer of ours.
type named interface {
	PublishAs(factory any, resource schema.GroupVersionResource)
}

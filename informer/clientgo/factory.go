package clientgo

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

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
// informers. The factory's namespace, transform and intervals of redelivery hold for ours too. Its
// tweak of list options cannot be read: give the same as options, such as [listwatch.Labels].
//
// It panics as FromClientset does, if the factory already has an informer of a type, and if it has
// a tweak and there are no options: ours would read what the program left out.
func Factory[F generated[N], N ~func(C, time.Duration) cache.SharedIndexInformer, C any](
	factory F, examples []runtime.Object, optionList ...listwatch.Option,
) F {
	namespace, tweaks := narrowed(factory)
	if tweaks && len(optionList) == 0 {
		panic("clientgo: Factory: the factory has a tweak of list options, which cannot be read: give the same as options, such as listwatch.Labels")
	}
	if namespace != "" {
		optionList = append([]listwatch.Option{listwatch.InNamespace(namespace)}, optionList...)
	}
	for _, example := range examples {
		made := factory.InformerFor(example, func(client C, resync time.Duration) cache.SharedIndexInformer {
			return FromClientset(client, example, resync, optionList...)
		})
		if _, ours := made.(*shared[Object]); !ours {
			panic(fmt.Sprintf("clientgo: Factory: the factory has an informer of %T already: call Factory first", example))
		}
	}
	return factory
}

// narrowed reads how a factory narrows its informers, from the fields of all generated factories.
func narrowed(factory any) (namespace string, tweaks bool) {
	fields := reflect.Indirect(reflect.ValueOf(factory))
	if fields.Kind() != reflect.Struct {
		return "", false
	}
	if f := fields.FieldByName("namespace"); f.IsValid() && f.Kind() == reflect.String {
		namespace = f.String()
	}
	f := fields.FieldByName("tweakListOptions")
	return namespace, f.IsValid() && f.Kind() == reflect.Func && !f.IsNil()
}

// generated is the part of a generated factory that takes constructors. N is its own type of them.
type generated[N any] interface {
	InformerFor(example runtime.Object, constructor N) cache.SharedIndexInformer
}

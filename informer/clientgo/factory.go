package clientgo

import (
	"fmt"
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
// informers. The factory's transform and intervals of redelivery hold for ours too. Its namespace
// and its tweak of list options are not known here: give them as options, such as
// [listwatch.InNamespace].
//
// It panics as FromClientset does, and if the factory already has an informer of a type.
func Factory[F generated[N], N ~func(C, time.Duration) cache.SharedIndexInformer, C any](
	factory F, examples []runtime.Object, optionList ...listwatch.Option,
) F {
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

// generated is the part of a generated factory that takes constructors. N is its own type of them.
type generated[N any] interface {
	InformerFor(example runtime.Object, constructor N) cache.SharedIndexInformer
}

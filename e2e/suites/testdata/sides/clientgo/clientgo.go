// Package clientgo has the names of our package that a program writes itself. Without our side they
// lead to client-go's.
package clientgo

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/e2e/suites/sides/side"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
)

type generated[N any] interface {
	InformerFor(obj runtime.Object, newFunc N) cache.SharedIndexInformer
}

func Factory[F generated[N], N ~func(C, time.Duration) cache.SharedIndexInformer, C any](factory F, examples []runtime.Object) F {
	if !side.Ours {
		return factory
	}
	side.Made()
	return clientgo.Factory(factory, examples)
}

// Filtered is a generated constructor such as NewFilteredPodInformer, or FromClientset, which an
// adopter writes in its place.
func Filtered[C any, T ~func(*metav1.ListOptions)](
	theirs func(C, string, time.Duration, cache.Indexers, T) cache.SharedIndexInformer, example runtime.Object,
) func(C, string, time.Duration, cache.Indexers, T) cache.SharedIndexInformer {
	if !side.Ours {
		return theirs
	}
	return func(client C, namespace string, resync time.Duration, indexers cache.Indexers, tweak T) cache.SharedIndexInformer {
		side.Made()
		made := clientgo.FromClientset(client, example, resync, listwatch.InNamespace(namespace), clientgo.Tweak(tweak))
		if err := made.AddIndexers(indexers); err != nil {
			panic(err)
		}
		return made
	}
}

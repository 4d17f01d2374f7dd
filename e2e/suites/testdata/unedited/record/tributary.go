package record

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo"
)

func init() {
	cache.NewOurs = func(lw cache.ListerWatcher, example runtime.Object, o cache.SharedIndexInformerOptions) cache.SharedIndexInformer {
		return clientgo.NewInformer(lw, example, o.ResyncPeriod, o.Indexers)
	}
}

package internal

import (
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo"
)

// newTributary is the default of Options.NewInformer.
func newTributary(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	fmt.Fprintln(os.Stderr, "tributary made: informer")
	return clientgo.NewInformer(lw, example, resync, indexers)
}

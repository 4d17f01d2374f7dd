package cache

import (
	"fmt"
	"os"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/rest"
)

// NewOurs is what New calls. The tests of the other packages set it before they run: this package
// cannot import what imports it.
var NewOurs NewCacheFunc

// New makes a cache of ours and names the spec, unless a test wants informers of its own making in the cache.
func New(config *rest.Config, options Options) (Cache, error) {
	if options.NewInformer != nil {
		fmt.Fprintln(os.Stderr, "tributary made: nothing")
		return clientNew(config, options)
	}
	fmt.Fprintln(os.Stderr, "tributary made: cache", ginkgo.CurrentSpecReport().FullText())
	return NewOurs(config, options)
}

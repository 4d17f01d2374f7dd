//go:build !clientgo035

package informers

import (
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	ours "github.com/tributary-go/tributary/informer/clientgo/informers"
)

func WithInformerName(name *cache.InformerName) SharedInformerOption {
	return SharedInformerOption{informers.WithInformerName(name), ours.WithInformerName(name), ""}
}

package cache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// NewOurs is set by package record: this package cannot import what imports it.
var NewOurs func(lw ListerWatcher, example runtime.Object, options SharedIndexInformerOptions) SharedIndexInformer

// NewSharedIndexInformerWithOptions is what client-go's factories and generated ones call.
func NewSharedIndexInformerWithOptions(lw ListerWatcher, example runtime.Object, options SharedIndexInformerOptions) SharedIndexInformer {
	fmt.Println("tributary made: informer")
	return NewOurs(lw, example, options)
}

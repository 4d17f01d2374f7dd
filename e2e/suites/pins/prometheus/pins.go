//go:build pins

package prometheus

import (
	_ "github.com/prometheus/prometheus/discovery/kubernetes"
	_ "github.com/prometheus/prometheus/util/testutil"
	_ "github.com/tributary-go/tributary/informer/clientgo"
)

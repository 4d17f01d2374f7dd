package suites

// The modules whose tests run here, and ours, for go.mod: what those tests import is then in
// go.sum.
import (
	_ "k8s.io/client-go/tools/cache"
	_ "k8s.io/sample-controller/pkg/generated/informers/externalversions"
	_ "k8s.io/sample-controller/pkg/signals"
	_ "sigs.k8s.io/controller-runtime/pkg/cache"

	_ "github.com/tributary-go/tributary/controllerruntime"
	_ "github.com/tributary-go/tributary/informer/clientgo"
	_ "github.com/tributary-go/tributary/informer/clientgo/dynamicinformer"
	_ "github.com/tributary-go/tributary/informer/clientgo/informers"
	_ "github.com/tributary-go/tributary/informer/clientgo/metadatainformer"
	_ "github.com/tributary-go/tributary/server/builtin"
	_ "github.com/tributary-go/tributary/server/crd"
)

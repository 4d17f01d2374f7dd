// Assets builds the control plane that the tests run on, unless it is in the cache, and prints
// where it is, as the environment variables that sigs.k8s.io/controller-runtime/pkg/envtest reads.
// It is run in the folder e2e.
package main

import (
	"fmt"
	"log"

	"github.com/tributary-go/tributary/e2e/cluster"
)

func main() {
	etcd, apiServer, err := cluster.Build(log.Printf)
	if err != nil {
		log.Fatalf("build the control plane: %v", err)
	}
	fmt.Printf("TEST_ASSET_ETCD=%s\nTEST_ASSET_KUBE_APISERVER=%s\n", etcd, apiServer)
}

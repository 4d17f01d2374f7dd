package crd

import (
	"os"
	"testing"

	"github.com/tributary-go/tributary/e2e/suites/sides/measure"
)

// TestTributaryMemory starts all informers of the provider for its custom resources.
func TestTributaryMemory(t *testing.T) {
	client, err := newExternalClusterClient(os.Getenv("TRIBUTARY_SERVER"), "", "")
	if err != nil {
		t.Fatal(err)
	}
	until := measure.From()
	stop := make(chan struct{})
	defer close(stop)
	if _, err := client.WatchAll(nil, stop); err != nil {
		t.Fatal(err)
	}
	until(len(client.GetIngressRoutes()) + len(client.GetMiddlewares()))
}

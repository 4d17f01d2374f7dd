package informer_test

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/informer"
)

// packedPods is the variable under which the tests keep their pods packed.
const packedPods = "TRIBUTARY_TEST_PACKED"

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // a test that reads logs sets its own logger
	if os.Getenv(packedPods) != "" {
		informer.PackPods()
	}
	goleak.VerifyTestMain(m)
}

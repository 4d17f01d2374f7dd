package e2e_test

import (
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/klog/v2"
)

// full is set to run at the full length of what takes minutes.
var full = os.Getenv("TRIBUTARY_E2E_FULL") != ""

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // client-go tells of every failure that a test makes
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.Cleanup(func(code int) {
			_ = os.RemoveAll(buildFolder)
			os.Exit(code)
		}))
}

// pass waits for real time to pass, where that is the experiment: a server that is away for so
// long.
func pass(d time.Duration) { <-time.After(d) }

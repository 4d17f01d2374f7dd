package e2e_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/klog/v2"
)

// full is set to run at the full length of what takes minutes.
var full = os.Getenv("TRIBUTARY_E2E_FULL") != ""

func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false") // client-go tells every failure that a test makes
	_ = flags.Set("stderrthreshold", "FATAL")
	klog.LogToStderr(false)
	klog.SetOutput(discard{})
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// pass waits for real time to pass, where that is the experiment: a server that is away for so long.
func pass(d time.Duration) { <-time.After(d) }

package suites

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// prometheusTable is of Prometheus v0.315.0. All of its tests pass.
var prometheusTable = table{passing: map[string]int{"informer": 79}}

// TestPrometheus runs the tests of Prometheus' discovery/kubernetes with our informers. The two
// lines that an adopter changes are the only constructors of informers in that package.
func TestPrometheus(t *testing.T) {
	w := newPinned(t, "github.com/prometheus/prometheus", "pins/prometheus")
	const folder = "discovery/kubernetes"
	const file, constructor = folder + "/kubernetes.go", "clientgo.NewInformer("
	w.replace(file, `"k8s.io/client-go/tools/cache"`, `"k8s.io/client-go/tools/cache"
	"github.com/tributary-go/tributary/informer/clientgo"`)
	w.replace(file, "cache.NewSharedInformer(lw, exampleObject, defaultEventHandlerResyncPeriod)",
		constructor+"lw, exampleObject, defaultEventHandlerResyncPeriod, nil)")
	w.replace(file, "cache.NewSharedIndexInformer(", constructor)
	outcomes := runAll(t, w.build(folder), w.file(folder), "informer")
	t.Logf("%s: %d tests of Prometheus' %s on ours", w.version, len(outcomes), folder)
	wrong := prometheusTable.verdict(outcomes)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
}

// ended is the line by which a test says that it has ended; a subtest's is indented.
var ended = regexp.MustCompile(`(?m)^--- (PASS|FAIL): (\S+)`)

// runAll runs all tests of a package in one process, in the package's folder. The output of a test
// that fails is that of all.
func runAll(t *testing.T, binary, folder, made string, environment ...string) (outcomes []outcome) {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary, "-test.v", "-test.timeout", "15m")
	command.Dir = folder
	command.Env = append(os.Environ(), environment...)
	out, err := command.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &failed)
	}
	failed := false
	for _, end := range ended.FindAllStringSubmatch(string(out), -1) {
		o := outcome{name: end[2], made: made, passed: end[1] == "PASS", tries: 1}
		if !o.passed {
			failed, o.output = true, string(out)
		}
		outcomes = append(outcomes, o)
	}
	require.True(t, err == nil || failed, "the tests passed, their process failed: %v:\n%s", err, out)
	return outcomes
}

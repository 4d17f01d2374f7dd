package suites

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var prometheus = pin{module: "github.com/prometheus/prometheus", version: "v0.315.0"}

// prometheusTable is of that version. All of its tests pass.
var prometheusTable = table{passing: map[string]int{"informer": 79}}

// TestPrometheus runs the tests of Prometheus' discovery/kubernetes with our informers. The two
// lines that an adopter changes are the only constructors of informers in that package.
func TestPrometheus(t *testing.T) {
	w := newWorkspace(t, prometheus)
	const folder = "discovery/kubernetes"
	const file, constructor = folder + "/kubernetes.go", "clientgo.NewInformer("
	w.replace(file, `"k8s.io/client-go/tools/cache"`, `"k8s.io/client-go/tools/cache"
	"github.com/tributary-go/tributary/informer/clientgo"`)
	w.replace(file, "cache.NewSharedInformer(lw, exampleObject, defaultEventHandlerResyncPeriod)",
		constructor+"lw, exampleObject, defaultEventHandlerResyncPeriod, nil)")
	w.replace(file, "cache.NewSharedIndexInformer(", constructor)
	outcomes := runAll(t, w.build(folder), w.file(folder), "informer")
	t.Logf("%s: %d tests of Prometheus' %s on ours", w.pin.version, len(outcomes), folder)
	wrong := prometheusTable.verdict(outcomes)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
}

const rules = "../../examples/node-agent/deploy/prometheus/"

// TestRules has promtool judge the alert rules of examples/node-agent, and those of the page on
// alerts: they are well formed, and fire when their tests say so.
func TestRules(t *testing.T) {
	if testing.Short() {
		t.Skip("builds another module: not under -short")
	}
	// promtool knows nothing of ours, and is built with the versions of its own release.
	w := &workspace{t: t, pin: prometheus, root: t.TempDir()}
	goMod := fmt.Sprintf("module promtool\n\ngo 1.26\n\nrequire %s %s\n", prometheus.module, prometheus.version)
	require.NoError(t, os.WriteFile(filepath.Join(w.root, "go.mod"), []byte(goMod), 0o600))
	promtool := filepath.Join(w.root, "promtool")
	// Rules discover no targets. Without the discoveries, promtool compiles in a third of the time.
	output(t, w.compile("build", "-tags=remove_all_sd", "-o", promtool, prometheus.module+"/cmd/promtool"))
	page, err := os.ReadFile("../../docs/howto/alerts.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(page), "```yaml\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	shown := t.TempDir() + "/"
	require.NoError(t, os.WriteFile(shown+"alerts.yaml", []byte(block), 0o600))
	tests, err := os.ReadFile("testdata/alerts_test.yaml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(shown+"alerts_test.yaml", tests, 0o600))
	for _, arguments := range [][]string{
		{"check", "rules", "--lint-fatal", rules + "alerts.yaml"},
		{"test", "rules", rules + "alerts_test.yaml"},
		{"check", "rules", "--lint-fatal", shown + "alerts.yaml"},
		{"test", "rules", shown + "alerts_test.yaml"},
	} {
		out, err := exec.Command(promtool, arguments...).CombinedOutput()
		t.Logf("%s", out)
		assert.NoError(t, err)
	}
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

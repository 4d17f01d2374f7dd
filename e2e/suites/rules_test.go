package suites

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

var prometheus = pin{"github.com/prometheus/prometheus", "v0.315.0", nil}

const rules = "../../examples/node-agent/deploy/prometheus/"

// TestRules has promtool judge the alert rules of examples/node-agent: they are well formed, and
// fire when their tests say so.
func TestRules(t *testing.T) {
	w := newVersions(t, prometheus)
	promtool := filepath.Join(w.root, "promtool")
	// Rules discover no targets. Without the discoveries, promtool compiles in a third of the time.
	output(t, w.compile("build", "-tags=remove_all_sd", "-o", promtool, prometheus.module+"/cmd/promtool"))
	for _, arguments := range [][]string{
		{"check", "rules", "--lint-fatal", rules + "alerts.yaml"},
		{"test", "rules", rules + "alerts_test.yaml"},
	} {
		out, err := exec.Command(promtool, arguments...).CombinedOutput()
		t.Logf("%s", out)
		assert.NoError(t, err)
	}
}

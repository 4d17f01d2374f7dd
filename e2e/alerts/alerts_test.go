// Package alerts has Prometheus' own promtool judge the rules of the examples. It is a module of
// its own, since promtool needs far more than the rest.
package alerts_test

import (
	"os/exec"
	"testing"
)

const folder = "../../examples/node-agent/deploy/prometheus/"

// Rules discover no targets. Without the discoveries, promtool compiles in a third of the time.
var promtool = []string{"run", "-tags=remove_all_sd", "github.com/prometheus/prometheus/cmd/promtool"}

// TestRules: the rules are well formed, and fire when their tests say so.
func TestRules(t *testing.T) {
	for _, arguments := range [][]string{
		{"check", "rules", "--lint-fatal", folder + "alerts.yaml"},
		{"test", "rules", folder + "alerts_test.yaml"},
	} {
		out, err := exec.Command("go", append(promtool, arguments...)...).CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
	}
}

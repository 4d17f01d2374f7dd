package suites

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// clientTable is of controller-runtime v0.25.2.
var clientTable = table{
	fails: map[string]failure{
		"DryRunClient should refuse a create request for an invalid object": {
			"of built-in kinds only pods are validated: a deployment without a template is taken", "to be true"},
		"DryRunClient should refuse an update request for an invalid change": {
			"of built-in kinds only pods are validated: the selector of a deployment may change", "to be true"},
	},
	passing: map[string]int{"informer": 309},
}

// TestClient runs the specs of controller-runtime's client on a server of ours. They are written
// for a real API server, whose place it takes: envtest starts nothing.
func TestClient(t *testing.T) {
	w := newWorkspace(t, pin{module: "sigs.k8s.io/controller-runtime"})
	const folder = "pkg/client"
	w.add("testdata/client", folder)
	w.replace(folder+"/client_suite_test.go", "testenv.Start()", "startTributary()")
	w.replace(folder+"/client_suite_test.go", "Expect(testenv.Stop()).To(Succeed())", "")
	report := filepath.Join(t.TempDir(), "report.json")
	command := exec.CommandContext(t.Context(), w.build(folder), "-ginkgo.json-report", report, "-ginkgo.no-color", "-test.timeout", "5m")
	command.Dir = w.file(folder)
	out, err := command.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &failed)
	}
	require.Contains(t, string(out), made+"server")
	ran, pending := withoutPending(specs(t, report))
	wrong := clientTable.verdict(ran)
	t.Logf("%s: %d specs of %s on a server of ours, %d of which fail as listed; %d are pending",
		w.pin.version, len(ran), folder, len(clientTable.fails), len(pending))
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
	require.ElementsMatch(t, pendingSpecs[folder], pending)
}

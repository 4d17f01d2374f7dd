package suites

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakePassing is how many specs of controller-runtime v0.25.2's pkg/client/fake pass on our server.
const fakePassing = 159

// TestFake runs the specs of controller-runtime's fake client on a server of ours, which holds what
// the builder is given, with controller-runtime's real client. Those that describe the fake itself,
// and not an API server, are in fakeSpecs with the reason.
func TestFake(t *testing.T) {
	w := newWorkspace(t, pin{module: "sigs.k8s.io/controller-runtime"})
	const folder, clients = "pkg/client/fake", "pkg/client/"
	w.add("testdata/fake", folder)
	w.rename(folder+"/client.go", "ClientBuilder.Build")
	// The fake takes objects of namespaced kinds without a namespace: theirs is then "default".
	w.replace(clients+"client_rest_resources.go", "\treturn objMeta, nil\n",
		"\tobjMeta.namespace = cmp.Or(objMeta.namespace, \"default\")\n\treturn objMeta, nil\n")
	for _, name := range []string{"typed_client.go", "unstructured_client.go"} {
		w.replace(clients+name, "IfScoped(key.Namespace,", "IfScoped(cmp.Or(key.Namespace, \"default\"),")
	}
	for _, name := range []string{"client_rest_resources.go", "typed_client.go", "unstructured_client.go"} {
		w.replace(clients+name, "import (\n", "import (\n\t\"cmp\"\n")
	}
	// The watch may tell an object before the answer to its creation is there, and that ends the
	// spec: its goroutine would fail the next spec, since a spec's context ends with it.
	const creates = `cl.Create(%s, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "for-watch"}})`
	w.replace(folder+"/client_test.go", fmt.Sprintf(creates, "ctx"), fmt.Sprintf(creates, "context.WithoutCancel(ctx)"))
	binary := w.build(folder, raceDetector()...)
	// This spec leaves goroutines behind when it fails, which would fail others: it runs alone.
	const alone = "If a DeleteAllOf races with a delete"
	outcomes := runFake(t, binary, w.file(folder), "-ginkgo.skip="+alone)
	outcomes = append(outcomes, runFake(t, binary, w.file(folder), "-ginkgo.focus="+alone)...)
	known := fakeTable()
	wrong := known.verdict(outcomes)
	failed, others := 0, 0
	for _, o := range outcomes {
		switch _, fails := known.fails[o.name]; {
		case o.made == "":
			others++
		case fails:
			failed++
		}
	}
	t.Logf("%s: %d specs of %s: %d pass on a server of ours, %d fail as listed, %d send it nothing",
		w.pin.version, len(outcomes), folder, len(outcomes)-failed-others, failed, others)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
}

func runFake(t *testing.T, binary, folder, which string) (outcomes []outcome) {
	report := filepath.Join(t.TempDir(), "report.json")
	command := exec.CommandContext(t.Context(), binary, which, "-ginkgo.json-report", report, "-ginkgo.no-color", "-test.timeout", "5m")
	command.Dir = folder
	if err := command.Run(); err != nil {
		failed := (*exec.ExitError)(nil)
		require.ErrorAs(t, err, &failed)
	}
	for _, o := range specs(t, report) {
		if strings.HasPrefix(o.output, "skipped: ") {
			continue
		}
		o.made = ""
		if strings.Contains(o.output, made+"server") {
			o.made = "server"
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

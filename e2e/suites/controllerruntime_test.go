package suites

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// controllerRuntimeTable is of controller-runtime v0.25.2. All of its specs pass.
var controllerRuntimeTable = table{
	timing: map[string]string{
		"should return an error when context is cancelled":                       soonSynced,
		"should allow for get informer to be cancelled":                          soonSynced,
		"should allow getting an informer by group/version/kind to be cancelled": soonSynced,
	},
	passing: map[string]int{"informer": 276},
}

const soonSynced = "it wants a timeout because its context has ended, and gets an informer if that has synced by the first look, " +
	"which comes after the start of the informer's goroutine"

// controllerRuntimeInformers is how many informers of ours the specs make at least; 508 to 510 were
// counted.
const controllerRuntimeInformers = 500

// TestControllerRuntime runs the specs of controller-runtime's cache on a real API server.
// Each informer that they do not make themselves is ours.
func TestControllerRuntime(t *testing.T) {
	w := newWorkspace(t, pin{module: "sigs.k8s.io/controller-runtime"})
	const internal = "pkg/cache/internal"
	w.add("testdata/controllerruntime", internal)
	w.replace(internal+"/informers.go", "newInformer := cache.NewSharedIndexInformer\n", "newInformer := newTributary\n")
	assets := strings.Fields(string(output(t, exec.Command("go", "run", "-C", "..", "./assets"))))
	report := filepath.Join(t.TempDir(), "report.json")
	command := exec.CommandContext(t.Context(), w.build("pkg/cache", raceDetector()...),
		"-ginkgo.json-report", report, "-ginkgo.no-color", "-ginkgo.flake-attempts", strconv.Itoa(maxTries), "-test.timeout", "15m")
	command.Dir = w.file("pkg/cache")
	command.Env = append(os.Environ(), "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=1m")
	command.Env = append(command.Env, assets...)
	out, err := command.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &failed)
	}
	outcomes := specs(t, report)
	informers := strings.Count(string(out), made+"informer")
	t.Logf("%s: %d specs of pkg/cache with %d informers of ours", w.pin.version, len(outcomes), informers)
	logRetries(t, outcomes)
	wrong := controllerRuntimeTable.verdict(outcomes)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
	require.NoError(t, err, "the specs passed, their process failed:\n%s", out)
	require.GreaterOrEqual(t, informers, controllerRuntimeInformers)
}

// specs reads a report of Ginkgo. Which spec made an informer is not in it.
func specs(t *testing.T, path string) (outcomes []outcome) {
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var reports []struct {
		SpecReports []struct {
			LeafNodeType            string
			ContainerHierarchyTexts []string
			LeafNodeText            string
			State                   string
			NumAttempts             int
			Failure                 struct {
				Message        string
				ForwardedPanic string
				Location       struct{ FullStackTrace string }
			}
			ReportEntries []struct{ Name string }
		}
	}
	require.NoError(t, json.Unmarshal(content, &reports))
	for _, r := range reports {
		for _, s := range r.SpecReports {
			if s.LeafNodeType != "It" && s.State == "passed" {
				continue // setting up and tearing down
			}
			var entries strings.Builder
			for _, entry := range s.ReportEntries {
				entries.WriteString("\n" + entry.Name)
			}
			outcomes = append(outcomes, outcome{
				name: strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " "),
				made: "informer", passed: s.State == "passed", tries: s.NumAttempts,
				output: s.State + ": " + s.Failure.Message + "\n" + s.Failure.ForwardedPanic + "\n" +
					s.Failure.Location.FullStackTrace + entries.String(),
			})
		}
	}
	return outcomes
}

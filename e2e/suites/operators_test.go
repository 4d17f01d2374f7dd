package suites

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// operator is a program whose tests run on ours, by the lines that an adopter changes.
type operator struct {
	pin   pin
	edits []edit
	// packages has how many tests, or Ginkgo's specs, of each package pass. None fails, as on
	// client-go's informers and controller-runtime's cache.
	packages map[string]int
	ginkgo   bool
	short    string // the package that runs without TRIBUTARY_OPERATORS
}

type edit struct{ file, before, after string }

const newCache = "github.com/tributary-go/tributary/controllerruntime"

var operators = map[string]operator{
	// Its manager names its informers for client-go's metrics by Options.NewInformer, which this
	// cache refuses. The cache of each workload cluster is ours, too.
	"Cluster API": {
		pin: pin{module: "sigs.k8s.io/cluster-api", version: "v1.14.2", more: []string{"sigs.k8s.io/cluster-api/api v1.14.2"}},
		edits: []edit{
			{"internal/test/envtest/environment.go", "options := manager.Options{\n", "options := manager.Options{\n\t\tNewCache: controllerruntime.NewCache,\n"},
			{"internal/test/envtest/environment.go", "import (\n", "import (\n\t\"" + newCache + "\"\n"},
			{"core/setup/setup.go", "\t\tNewInformer: capicontrollerutil.NewInformerFunc(scheme, controllerName),\n", ""},
			{"core/setup/setup.go", "\tcapicontrollerutil \"sigs.k8s.io/cluster-api/util/controller\"\n", ""},
			{"controllers/clustercache/cluster_accessor_client.go", "ctrlcache.New(", "controllerruntime.NewCache("},
			{"controllers/clustercache/cluster_accessor_client.go", "import (\n", "import (\n\t\"" + newCache + "\"\n"},
			// Built with the flag trimpath, it does not find its files by the path of its source.
			{"internal/test/envtest/environment.go", sourceFile, sourceHere},
			{"internal/test/envtest/webhooks.go", sourceFile, sourceHere},
		},
		packages: map[string]int{
			"core/reconcilers/machineset": 36, "core/reconcilers/machinedeployment": 33, "controllers/clustercache": 14,
		},
		short: "core/reconcilers/machineset",
	},
	// Its manager for watches starts and stops informers while the program runs, and its cache
	// keeps constraints, whose definitions it makes from templates.
	"Gatekeeper": {
		pin: pin{module: "github.com/open-policy-agent/gatekeeper/v3", version: "v3.23.1"},
		edits: append(inOptions("test/testutils/manager.go", "pkg/watch/manager_integration_test.go",
			"pkg/controller/config/config_controller_test.go", "pkg/readiness/ready_tracker_test.go"),
			// It asks for k8s.io/apiserver 0.36, in which these were objects.
			edit{lazyObjects, "wrapped.GetOldObject(),", "admission.NewLazyObject(wrapped.GetOldObject()),"},
			edit{lazyObjects, " wrapped.GetObject(),", " admission.NewLazyObject(wrapped.GetObject()),"}),
		packages: map[string]int{
			"pkg/controller/config": 7, "pkg/watch": 17, "pkg/readiness": 41, "pkg/controller/syncset": 1,
			"pkg/cachemanager": 8,
		},
		short: "pkg/controller/config",
	},
	"Karpenter": {
		pin: pin{module: "sigs.k8s.io/karpenter", version: "v1.14.0"}, ginkgo: true,
		edits: []edit{
			{"pkg/test/environment.go", "cache.New(environment.Config", "controllerruntime.NewCache(environment.Config"},
			{"pkg/test/environment.go", "import (\n", "import (\n\t\"" + newCache + "\"\n"},
		},
		packages: map[string]int{
			"pkg/controllers/nodeclaim/lifecycle": 81, "pkg/controllers/node/health": 15, "pkg/controllers/node/termination": 31,
		},
		short: "pkg/controllers/node/health",
	},
}

// inOptions edits the files that make a manager: the one line, and its import.
func inOptions(files ...string) (edits []edit) {
	for _, file := range files {
		edits = append(edits,
			edit{file, "manager.Options{\n", "manager.Options{\n\t\tNewCache: controllerruntime.NewCache,\n"},
			edit{file, "import (\n", "import (\n\t\"" + newCache + "\"\n"})
	}
	return edits
}

const (
	lazyObjects = "pkg/drivers/k8scel/transform/request.go"

	sourceFile = "_, filename, _, _ := goruntime.Caller(0) //nolint:dogsled\n"
	sourceHere = "filename, _ := \"FOLDER/internal/test/envtest/environment.go\", goruntime.GOOS\n"
)

// TestOperators runs the tests of real operators, on a real API server where they start one. With
// TRIBUTARY_OPERATORS it runs all that are listed, for some twenty minutes of two cores.
func TestOperators(t *testing.T) {
	all := os.Getenv("TRIBUTARY_OPERATORS") != ""
	assets := assets(t)
	for _, name := range slices.Sorted(maps.Keys(operators)) {
		o := operators[name]
		if all || o.short != "" {
			t.Run(name, func(t *testing.T) { o.judge(t, all, assets) })
		}
	}
}

func (o operator) judge(t *testing.T, all bool, assets []string) {
	w := newWorkspace(t, o.pin)
	for _, e := range o.edits {
		w.replace(e.file, e.before, strings.ReplaceAll(e.after, "FOLDER", w.folder))
	}
	for _, folder := range slices.Sorted(maps.Keys(o.packages)) {
		if !all && folder != o.short {
			continue
		}
		began := time.Now()
		binary := w.build(folder)
		built := time.Since(began).Round(time.Second)
		began = time.Now()
		var outcomes []outcome
		if o.ginkgo {
			outcomes, _ = runSpecs(t, binary, w.file(folder), assets)
		} else {
			outcomes = runAll(t, binary, w.file(folder), "informer", assets...)
		}
		t.Logf("%s: %d tests of %s on ours, built in %s, run in %s",
			w.pin.version, len(outcomes), folder, built, time.Since(began).Round(time.Second))
		wrong := table{passing: map[string]int{"informer": o.packages[folder]}}.verdict(outcomes)
		assert.Empty(t, wrong, "%s\n%s", folder, strings.Join(wrong, "\n"))
	}
}

// assets is the environment of a test that starts an API server.
func assets(t *testing.T) []string {
	assets := strings.Fields(string(output(t, exec.Command("go", "run", "-C", "..", "./assets"))))
	return append(assets, "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=1m")
}

// runSpecs runs a suite of Ginkgo in its folder, and returns what it printed, too.
func runSpecs(t *testing.T, binary, folder string, environment []string, flags ...string) (outcomes []outcome, printed string) {
	report := filepath.Join(t.TempDir(), "report.json")
	flags = append(flags, "-ginkgo.json-report", report, "-ginkgo.no-color", "-test.timeout", "15m")
	command := exec.CommandContext(t.Context(), binary, flags...)
	command.Dir = folder
	command.Env = append(os.Environ(), environment...)
	out, err := command.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &failed, string(out))
	}
	return specs(t, report), string(out)
}

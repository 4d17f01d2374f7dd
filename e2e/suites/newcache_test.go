package suites

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// newCacheSuites has, per package of controller-runtime v0.25.2, how many of its specs make a cache
// of ours and how many make none. All pass. There are no others but those of pendingSpecs. The
// specs of pkg/source share one cache, which their suite makes.
var newCacheSuites = map[string]map[string]int{
	"pkg/cache":               {"cache": 267, noCache: 9},
	"pkg/client":              {"cache": 13, noCache: 298},
	"pkg/source":              {"cache": 0, noCache: 19},
	"pkg/builder":             {"cache": 72, noCache: 0},
	"pkg/manager":             {"cache": 60, noCache: 47},
	"pkg/cluster":             {"cache": 12, noCache: 3},
	"pkg/internal/controller": {"cache": 8, noCache: 67},
}

// noCache is what a spec makes that makes no cache of ours.
const noCache = "other parts of controller-runtime"

// pendingSpecs are those that controller-runtime leaves pending: names without a body.
var pendingSpecs = map[string][]string{
	"pkg/client": {
		"Client Create with structured objects should " + notMapped,
		"Client Update with structured objects should fail if the object does not pass server-side validation",
		"Client Update with structured objects should " + noMeta,
		"Client Update with structured objects should " + notMapped,
		"Client StatusClient with structured objects should " + notMapped,
		"Client StatusClient with structured objects should fail if an API does not implement Status subresource",
		"Client StatusClient with unstructured objects should " + notMapped,
		"Client StatusClient with unstructured objects should fail if an API does not implement Status subresource",
		"Client Delete with structured objects should " + noMeta,
		"Client Delete with structured objects should " + notMapped,
		"Client Get with structured objects should " + noMeta,
		"Client Get with structured objects should " + notMapped,
		"Client Get with metadata objects should " + noMeta,
		"Client Get with metadata objects should " + notMapped,
		"Client List with structured objects should " + noMeta,
		"Client List with structured objects should fail if the object cannot be mapped to a GVK",
		"Client List with structured objects should " + notMapped,
		"Client List with unstructured objects should " + noMeta,
		"Client List with unstructured objects should filter results by namespace selector",
		"Client List with metadata objects should " + noMeta,
		"Client List with metadata objects should fail if the object cannot be mapped to a GVK",
		"Client List with metadata objects should " + notMapped,
	},
	"pkg/source": {"Source Kind for a Foo CRD resource should provide Foo Events"},
	"pkg/internal/controller": {
		"controller Processing queue items from a Controller should return if the queue is shutdown",
		"controller Processing queue items from a Controller should wait for informers to be synced before processing items",
		"controller Processing queue items from a Controller should create a new go routine for MaxConcurrentReconciles",
	},
}

const (
	notMapped = "fail if the GVK cannot be mapped to a Resource"
	noMeta    = "fail if the object doesn't have meta"
)

// theirCaches is how often the tests of pkg/cache set Options.NewInformer, which only
// controller-runtime's own cache accepts: in the three specs that "should be able to get informer
// for the object without blocking", which count in the table and say nothing about ours, and three
// times in the pure Go tests TestReaderWaitsForCacheSync and TestIndexFieldDoesNotBlock.
const theirCaches = 6

// newCacheTimes has the specs that may be run again: those that may with our informers alone.
var newCacheTimes = controllerRuntimeTable.timing

// TestNewCache runs controller-runtime's own specs on a real API server. Each cache that they make
// is ours, in the manager too.
func TestNewCache(t *testing.T) {
	w := newWorkspace(t, pin{module: "sigs.k8s.io/controller-runtime"})
	w.add("testdata/newcache", "pkg/cache")
	w.rename("pkg/cache/cache.go", "New")
	assets := strings.Fields(string(output(t, exec.Command("go", "run", "-C", "..", "./assets"))))
	for _, name := range slices.Sorted(maps.Keys(newCacheSuites)) {
		w.useNewCache(name, "")
	}
	w.stopTheirServers()
	free := make(chan struct{}, max(1, runtime.NumCPU()/2))
	for _, name := range slices.Sorted(maps.Keys(newCacheSuites)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			free <- struct{}{}
			defer func() { <-free }()
			own := *w
			own.t = t
			own.judgeNewCache(t, name, assets)
		})
	}
}

// stopTheirServers edits two specs that put an API server of their own in the place of the suite's.
// Nothing stopped that and the first spec's: two pairs of etcd and API server outlived the run.
func (w *workspace) stopTheirServers() {
	w.t.Helper()
	const specs = "pkg/internal/controller/controller_test.go"
	const before, own = "testenv = &envtest.Environment{}\n", "testenv := &envtest.Environment{}\n"
	const three, four = "\t\t\tcfg, err := testenv.Start()\n", "\t\t\t\tcfg, err := testenv.Start()\n"
	w.replace(specs, before+three, own+"\t\t\tDeferCleanup(testenv.Stop)\n"+three)
	w.replace(specs, before+four, own+four)
}

func (w *workspace) judgeNewCache(t *testing.T, name string, assets []string) {
	run := w.runNewCache(t, name, assets)
	logRetries(t, run.ran)
	for i, o := range run.ran {
		run.ran[i].made = noCache
		if run.makers[o.name] {
			run.ran[i].made = "cache"
		}
	}
	wrong := table{timing: newCacheTimes, passing: newCacheSuites[name]}.verdict(run.ran)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
	require.NoError(t, run.err, "the specs passed, their process failed:\n%s", run.out)
	require.ElementsMatch(t, pendingSpecs[name], run.pending)
}

// newCacheRun is a run of the specs of a package with our cache.
type newCacheRun struct {
	ran     []outcome
	pending []string
	makers  map[string]bool // specs that made a cache of ours
	out     []byte
	err     error // of the process
}

func (w *workspace) runNewCache(t *testing.T, name string, assets []string) (run newCacheRun) {
	report := filepath.Join(t.TempDir(), "report.json")
	command := exec.CommandContext(t.Context(), w.build(name),
		"-ginkgo.json-report", report, "-ginkgo.no-color", "-ginkgo.flake-attempts", strconv.Itoa(maxTries), "-test.timeout", "15m")
	command.Dir = w.file(name)
	command.Env = append(os.Environ(), "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=1m")
	command.Env = append(command.Env, assets...)
	run.out, run.err = command.CombinedOutput()
	if failed := (*exec.ExitError)(nil); run.err != nil {
		require.ErrorAs(t, run.err, &failed)
	}
	run.ran, run.pending = withoutPending(specs(t, report))
	caches, theirs := strings.Count(string(run.out), made+"cache"), strings.Count(string(run.out), made+"nothing")
	run.makers = map[string]bool{}
	for _, line := range madeCache.FindAllStringSubmatch(string(run.out), -1) {
		run.makers[line[1]] = true
	}
	t.Logf("%s: %d specs of %s, of which %d made %d caches of ours; %d are pending",
		w.pin.version, len(run.ran), name, len(run.makers), caches, len(run.pending))
	require.Positive(t, caches)
	if name != "pkg/cache" {
		require.Zero(t, theirs)
	} else {
		require.Equal(t, theirCaches, theirs, "caches with informers of the specs' own making")
	}
	return run
}

// madeCache is printed when a spec makes a cache; its name is the report's.
var madeCache = regexp.MustCompile(made + `cache (.+)`)

// withoutPending tells the specs that ran from the names of those that controller-runtime leaves
// pending.
func withoutPending(all []outcome) (ran []outcome, pending []string) {
	for _, o := range all {
		if strings.HasPrefix(o.output, "pending: ") {
			pending = append(pending, o.name)
		} else {
			ran = append(ran, o)
		}
	}
	return ran, pending
}

// logRetries says what the first tries failed with, lest a spec that often fails looks like the
// others.
func logRetries(t *testing.T, outcomes []outcome) {
	for _, o := range outcomes {
		if o.tries > 1 {
			t.Logf("%s was run %d times: %s", o.name, o.tries, o.output)
		}
	}
}

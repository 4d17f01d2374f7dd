package suites

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// newCacheSuites has, per package of controller-runtime v0.25.2, how many of its specs pass with
// our cache, and how many controller-runtime itself leaves pending, as names without a body. There
// are no others.
var newCacheSuites = map[string]struct{ passing, pending int }{
	"pkg/cache":               {passing: 276},
	"pkg/client":              {passing: 311, pending: 22},
	"pkg/source":              {passing: 19, pending: 1},
	"pkg/builder":             {passing: 72},
	"pkg/manager":             {passing: 107},
	"pkg/cluster":             {passing: 15},
	"pkg/internal/controller": {passing: 75, pending: 3},
}

// theirCaches is how often the tests of pkg/cache set Options.NewInformer, which only
// controller-runtime's own cache accepts: in the three specs that "should be able to get informer
// for the object without blocking", which count in the table and say nothing about ours, and three
// times in the pure Go tests TestReaderWaitsForCacheSync and TestIndexFieldDoesNotBlock.
const theirCaches = 6

// newCacheTimes: any of these specs may be run again, since they allow their API server seconds.
var newCacheTimes = map[string]string{"": "it allows an API server on a busy machine a few seconds"}

// TestNewCache runs controller-runtime's own specs on a real API server. Each cache that they make
// is ours, in the manager too.
func TestNewCache(t *testing.T) {
	w := newWorkspace(t, "sigs.k8s.io/controller-runtime")
	w.add("testdata/newcache", "pkg/cache")
	w.rename("pkg/cache/cache.go", "New")
	assets := strings.Fields(string(output(t, exec.Command("go", "run", "-C", "..", "./assets"))))
	for _, name := range slices.Sorted(maps.Keys(newCacheSuites)) {
		w.useNewCache(name)
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
	report := filepath.Join(t.TempDir(), "report.json")
	command := exec.CommandContext(t.Context(), w.build(name),
		"-ginkgo.json-report", report, "-ginkgo.no-color", "-ginkgo.flake-attempts", strconv.Itoa(maxTries), "-test.timeout", "15m")
	command.Dir = w.file(name)
	command.Env = append(os.Environ(), "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=1m")
	command.Env = append(command.Env, assets...)
	out, err := command.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &failed)
	}
	all := specs(t, report)
	ran := slices.DeleteFunc(slices.Clone(all), func(o outcome) bool { return strings.HasPrefix(o.output, "pending: ") })
	want := newCacheSuites[name]
	caches, theirs := strings.Count(string(out), made+"cache"), strings.Count(string(out), made+"nothing")
	t.Logf("%s: %d specs of %s with %d caches of ours; %d are pending", w.version, len(ran), name, caches, len(all)-len(ran))
	wrong := table{timing: newCacheTimes, passing: map[string]int{"informer": want.passing}}.verdict(ran)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
	require.NoError(t, err, "the specs passed, their process failed:\n%s", out)
	require.Equal(t, want.pending, len(all)-len(ran), "pending specs")
	require.Positive(t, caches)
	if name != "pkg/cache" {
		require.Zero(t, theirs)
	} else {
		require.Equal(t, theirCaches, theirs, "caches with informers of the specs' own making")
	}
}

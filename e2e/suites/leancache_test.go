package suites

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// leanKinds are all built-in kinds that the specs of pkg/cache read.
const leanKinds = `controllerruntime.Lean(&tributarycore.Pod{}, &tributarycore.Service{}, &tributarycore.ServiceAccount{}, ` +
	`&tributarycore.Node{}, &tributarycore.Namespace{})`

// leanPasses is how many specs of pkg/cache pass with Lean: those that get objects by name, and
// those of metadata.
const leanPasses = 87

// leanRefusal is why some specs do not apply to lean kinds.
type leanRefusal struct {
	failure
	specs int      // how many
	names []string // parts of their names, of which $ is the end
}

func (r leanRefusal) has(spec string) bool {
	return slices.ContainsFunc(r.names, func(part string) bool { return strings.Contains(spec+"$", part) })
}

var leanRefusals = []leanRefusal{
	{failure{"it lists whole objects", "controllerruntime: list "}, 143, []string{
		"and cache with selectors",
		"with structured objects should be able to list objects by namespace",
		"with structured objects should be able to list objects that haven't been watched",
		"with structured objects should be able to list objects with GVK populated",
		"with structured objects should not deep copy",
		"with structured objects should return a limited result set",
		"with structured objects should return an error if pagination is used",
		"with structured objects should set the Limit option",
		"with structured objects should support filtering by labels",
		"with unstructured objects should be able to list objects",
		"with unstructured objects should be able to restrict cache to a namespace",
		"with unstructured objects should not deep copy",
		"with unstructured objects should return an error if pagination is used",
		"with unstructured objects should support filtering by labels",
		"with unstructured objects test multinamespaced cache",
		"using UnsafeDisableDeepCopy with ListOptions",
		"Cache with selectors Should list",
		"with structured objects should apply transformers to explicitly specified GVKS",
		"with unstructured objects should apply transformers to explicitly specified GVKS",
	}},
	{failure{"it gets an informer of whole objects", "controllerruntime: watch "}, 20, []string{
		"with metadata-only objects should be able to restrict cache to a namespace$",
		"with structured objects should be able to get informer for the object",
		"with structured objects should be able to get an informer by group/version/kind",
		"with structured objects should be able to stop and restart informers",
		"with structured objects should be able to get objects that are configured to be watched",
		"with structured objects should be able to list objects that are configured to be watched",
		"with unstructured objects should be able to get informer for the object",
		"with unstructured objects should be able to stop and restart informers",
	}},
	{failure{"it indexes whole objects", "controllerruntime: index "}, 12, []string{
		"with structured objects should be able not to change indexer values",
		"with structured objects should be able to index an object field",
		"with structured objects should be able to matching fields with multiple indexes",
		"with unstructured objects should be able to index an object field",
	}},
	{failure{"it lists whole objects, or gets their informer, with a context that has ended, and wants a timeout", "to be true"}, 12, []string{
		"with structured objects should return an error when context is cancelled",
		"with structured objects should allow for get informer to be cancelled",
		"with structured objects should allow getting an informer by group/version/kind to be cancelled",
		"with unstructured objects should allow for get informer to be cancelled",
	}},
	{failure{"ReaderFailOnMissingInformer: a Get by name needs no informer, and a List is refused for Lean", "to be true"}, 2, []string{
		"with structured objects should not be able to list objects that haven't been watched",
		"with structured objects should not be able to get objects that haven't been watched",
	}},
}

// TestLeanCache runs controller-runtime's specs of pkg/cache on a cache to which all of their kinds
// are lean. A spec passes, or is refused for the reason that is listed: none finds less than all.
func TestLeanCache(t *testing.T) {
	w := newWorkspace(t, pin{module: "sigs.k8s.io/controller-runtime"})
	w.add("testdata/newcache", "pkg/cache")
	w.rename("pkg/cache/cache.go", "New")
	w.useNewCache("pkg/cache", leanKinds)
	run := w.runNewCache(t, "pkg/cache", strings.Fields(string(output(t, exec.Command("go", "run", "-C", "..", "./assets")))))
	known := table{timing: newCacheTimes, fails: map[string]failure{}, passing: map[string]int{"informer": leanPasses}}
	for _, r := range leanRefusals {
		found := 0
		for i, o := range run.ran {
			if r.has(o.name) {
				known.fails[o.name] = r.failure
				run.ran[i].tries = 1 // each of them fails the same way
				found++
			}
		}
		require.Equal(t, r.specs, found, r.reason)
	}
	wrong := known.verdict(run.ran)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
}

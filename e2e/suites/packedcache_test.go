package suites

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// packedFails are the specs that look for the cache's own object in a reader's.
var packedFails = table{timing: newCacheTimes, passing: map[string]int{"informer": 270}, fails: map[string]failure{
	"Informer Cache without global DeepCopy Cache test as a Reader with structured objects should not deep copy the object if UnsafeDisableDeepCopy is enabled":    readsAreOwn,
	"Informer Cache without global DeepCopy Cache test as a Reader with unstructured objects should not deep copy the object if UnsafeDisableDeepCopy is enabled":  readsAreOwn,
	"Informer Cache without global DeepCopy Cache test as a Reader with metadata-only objects should not deep copy the object if UnsafeDisableDeepCopy is enabled": readsAreOwn,
	"Informer Cache without global DeepCopy Cache test using UnsafeDisableDeepCopy with GetOptions should be able to change object in informer cache":              readsAreOwn,
	"Informer Cache Cache test using UnsafeDisableDeepCopy with GetOptions should be able to change object in informer cache":                                      readsAreOwn,
	"Multi-Namespace Informer Cache Cache test using UnsafeDisableDeepCopy with GetOptions should be able to change object in informer cache":                      readsAreOwn,
}}

var readsAreOwn = failure{"each read of a packed kind decodes an object, which is the reader's own", "Expected"}

// TestPackedCache runs controller-runtime's specs of pkg/cache on a cache that keeps all of their
// kinds packed. The same specs pass as without packing, but for those of UnsafeDisableDeepCopy.
func TestPackedCache(t *testing.T) {
	w := newWorkspace(t, pin{module: "sigs.k8s.io/controller-runtime"})
	w.add("testdata/newcache", "pkg/cache")
	w.rename("pkg/cache/cache.go", "New")
	w.useNewCache("pkg/cache", "controllerruntime.Packed(tributarypacked.Like)")
	run := w.runNewCache(t, "pkg/cache", strings.Fields(string(output(t, exec.Command("go", "run", "-C", "..", "./assets")))))
	for i, o := range run.ran {
		if _, fails := packedFails.fails[o.name]; fails {
			run.ran[i].tries = 1 // each try fails the same way
		}
	}
	wrong := packedFails.verdict(run.ran)
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
}

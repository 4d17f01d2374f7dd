package suites

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// toolsCacheTable is of client-go v0.37.2.
var toolsCacheTable = table{
	elsewhere: map[string]string{
		"delta_fifo_test.go":          "client-go's queues: ours has none",
		"event_handler_name_test.go":  "the names that client-go logs for handlers",
		"expiration_cache_test.go":    "a store whose content expires: ours has none",
		"fifo_test.go":                "client-go's queues: ours has none",
		"heap_test.go":                "client-go's queues: ours has none",
		"identity_test.go":            "the names in client-go's metrics",
		"listwatch_test.go":           "client-go's own ListWatch",
		"object-names_test.go":        "ObjectName",
		"reflector_test.go":           "client-go's reflector (those of its tests that make a store have ours, and count)",
		"reflector_watchlist_test.go": "client-go's reflector (likewise)",
		"retry_with_deadline_test.go": "a helper of client-go's reflector",
		"the_real_fifo_test.go":       "client-go's queues: ours has none",
		"thread_safe_store_test.go":   "the maps under client-go's store, which are looked into: ours has none",
		"typed_test.go":               "typed handlers, which wrap any informer (those of its tests that make an indexer have ours, and count)",
		"wait_test.go":                "WaitFor",

		"TestDeletionHandlingObjectToName": "names of objects",
		"TestDeletedObjectGetObjectName":   "names of objects",
		"TestDeletedObjectGetKey":          "names of objects",
		"TestFIFOCache":                    "client-go's queues: ours has none",
		"TestKeyError":                     "an error of client-go's",
		"TestCacheWithTransformer":         "a store that transforms what is written to it: ours has none, sources transform",
		"TestWithStoreMetricsDefaulting":   "metrics of client-go's store: ours has none",
	},
	fails: map[string]failure{
		"TestCacheTransactionShouldIndexErrors": {
			"cache.TransactionStore, by which client-go's informer writes since 0.36, is not a part of cache.Indexer, and our indexers lack it",
			"not cache.TransactionStore: missing method Transaction"},
		"TestMutationDetector": {
			"it puts a detector into a field of client-go's informer; ours is a test of its own",
			"test timed out"},
		"TestResyncCheckPeriod": {
			"it reads fields of client-go's informer: ours has no common period, each handler has its own",
			"invalid memory address or nil pointer dereference"},
	},
	timing: map[string]string{
		"TestNewReflectorWithCustomBackoff": "client-go's reflector must be done within 300 ms of real time, of which its delays take 250",
	},
	passing: map[string]int{"informer": 29, "indexer": 43, "undelta store": 5},
}

// toolsCacheModule is client-go with ours in the place of the shared informer, of the informers in
// controller.go, of the stores and indexers, and of the UndeltaStore.
func toolsCacheModule(t *testing.T) *workspace {
	w := newWorkspace(t, pin{module: "k8s.io/client-go"})
	w.add("testdata/toolscache", toolsCache)
	const informers = toolsCache + "/shared_informer"
	w.replace(informers+".go", "type sharedIndexInformer struct {\n", "type sharedIndexInformer struct {\n\tSharedIndexInformer\n")
	replaced := []string{"NewSharedIndexInformerWithOptions"}
	for _, method := range []string{
		"AddEventHandler", "AddEventHandlerWithOptions", "AddEventHandlerWithResyncPeriod", "AddIndexers", "GetController", "GetIndexer",
		"GetStore", "HasSynced", "HasSyncedChecker", "IsStopped", "LastSyncResourceVersion", "RemoveEventHandler", "Run",
		"RunWithContext", "SetTransform", "SetWatchErrorHandler", "SetWatchErrorHandlerWithContext",
	} {
		replaced = append(replaced, "sharedIndexInformer."+method)
	}
	w.rename(informers+".go", replaced...)
	w.rename(informers+"_test.go", "isStarted", "eventHandlerCount", "isRegistered")
	w.rename(toolsCache+"/store.go", "NewStore", "NewIndexer")
	w.rename(toolsCache+"/undelta_store.go", "NewUndeltaStore",
		"UndeltaStore.Add", "UndeltaStore.Update", "UndeltaStore.Delete", "UndeltaStore.Replace")
	w.rename(toolsCache+"/controller.go", "NewInformerWithOptions", "NewInformer", "NewIndexerInformer",
		"NewTransformingInformer", "NewTransformingIndexerInformer")
	return w
}

const (
	toolsCache = "tools/cache"
	made       = "tributary made: " // printed by the files in testdata
)

// TestToolsCache runs the tests and examples of client-go's tools/cache on ours.
func TestToolsCache(t *testing.T) {
	w := toolsCacheModule(t)
	files := w.testFiles(toolsCache)
	binary := w.build(toolsCache, raceDetector()...)
	names := strings.Fields(string(output(t, exec.Command(binary, "-test.list", "^(Test|Example)"))))
	outcomes := make([]outcome, len(names))
	free := make(chan struct{}, runtime.NumCPU())
	var running sync.WaitGroup
	for i, name := range names {
		running.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			outcomes[i] = runOne(t.Context(), binary, name)
			outcomes[i].file = files[name]
		})
	}
	running.Wait()
	for i, o := range outcomes {
		for tries := 2; tries <= maxTries && !o.passed && toolsCacheTable.isTiming(o.name); tries++ {
			o = runOne(t.Context(), binary, o.name) // alone
			o.tries, o.file = tries, files[o.name]
			outcomes[i] = o
			t.Logf("%s was run again: %s", o.name, toolsCacheTable.timing[o.name])
		}
	}
	wrong := toolsCacheTable.verdict(outcomes)
	cases, passed := 0, 0
	for _, o := range outcomes {
		if o.made != "" && o.passed {
			passed++
			cases += strings.Count(o.output, "--- PASS")
		}
	}
	t.Logf("%s: %d tests and examples of %s: %d passed on ours (%d with their subtests: %v), %d failed as listed, the others make nothing of ours",
		w.pin.version, len(outcomes), toolsCache, passed, cases, toolsCacheTable.passing, len(toolsCacheTable.fails))
	require.Empty(t, wrong, strings.Join(wrong, "\n"))
}

// runOne runs a test in a process of its own: a panic costs no other test, and what the test leaves
// running is its own.
func runOne(ctx context.Context, binary, name string) outcome {
	limit := "3m"
	if _, fails := toolsCacheTable.fails[name]; fails {
		limit = "20s" // one waits for what never comes
	}
	out, err := exec.CommandContext(ctx, binary, "-test.run", "^"+name+"$", "-test.v", "-test.timeout", limit).CombinedOutput()
	o := outcome{name: name, passed: err == nil, output: string(out), tries: 1}
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		o.output += err.Error()
	}
	for _, what := range []string{"informer", "undelta store", "indexer"} {
		if o.made == "" && strings.Contains(o.output, made+what) {
			o.made = what
		}
	}
	return o
}

package suites

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// factoriesTables are of client-go v0.37.2. Its package informers has no tests.
var factoriesTables = map[string]table{
	"dynamic/dynamicinformer":   {passing: map[string]int{"informer": 4}},
	"metadata/metadatainformer": {passing: map[string]int{"informer": 3}},
}

// TestFactories runs the tests of client-go's dynamic and metadata factories, with informers of
// ours in them.
func TestFactories(t *testing.T) {
	w := toolsCacheModule(t)
	file, err := os.ReadFile("testdata/factories/tributary.go.txt")
	require.NoError(t, err)
	for name, known := range factoriesTables {
		tests, err := filepath.Glob(w.file(name + "/*_test.go"))
		require.NoError(t, err)
		content := strings.Replace(string(file), "PACKAGE", packageOf(t, tests[0]), 1)
		require.NoError(t, os.WriteFile(w.file(name+"/tributary_test.go"), []byte(content), 0o644))
		binary := w.build(name, "-race")
		var outcomes []outcome
		for _, test := range strings.Fields(string(output(t, exec.Command(binary, "-test.list", "^Test")))) {
			outcomes = append(outcomes, runOne(t.Context(), binary, test))
		}
		t.Logf("%s: %d tests of %s on ours", w.version, len(outcomes), name)
		wrong := known.verdict(outcomes)
		require.Empty(t, wrong, strings.Join(wrong, "\n"))
	}
}

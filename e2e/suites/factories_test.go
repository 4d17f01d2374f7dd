package suites

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// factories are the tests of client-go v0.37.2 for its dynamic and metadata factories, and the
// edits that give them ours. An edited file names no factory of client-go's, so all that it makes
// is ours. Those of the metadata factory are in its own package, which cannot import ours: they
// become external. client-go's package informers has no tests.
var factories = map[string]struct {
	edits map[string]string
	known table
}{
	"dynamic/dynamicinformer": {
		edits: map[string]string{
			`"k8s.io/client-go/dynamic/dynamicinformer"`: `"github.com/tributary-go/tributary/informer/clientgo/dynamicinformer"`,
			`dynamic.NewForConfig(cfg)`:                  `dynamicinformer.NewForConfig(cfg)`,
			"\t\"k8s.io/client-go/dynamic\"\n":           "",
		},
		known: table{passing: map[string]int{"informer": 4}},
	},
	"metadata/metadatainformer": {
		edits: map[string]string{
			"package metadatainformer\n":  "package metadatainformer_test\n",
			`"k8s.io/client-go/metadata"`: `. "github.com/tributary-go/tributary/informer/clientgo/metadatainformer"`,
			`metadata.NewForConfig(cfg)`:  `NewForConfig(cfg)`,
		},
		known: table{passing: map[string]int{"informer": 3}},
	},
}

// TestFactories runs the tests of client-go's dynamic and metadata factories on ours.
func TestFactories(t *testing.T) {
	w := newWorkspace(t, pin{module: "k8s.io/client-go"})
	for name, of := range factories {
		for before, after := range of.edits {
			w.replace(name+"/informer_test.go", before, after)
		}
		binary := w.build(name, raceDetector()...)
		var outcomes []outcome
		for _, test := range strings.Fields(string(output(t, exec.Command(binary, "-test.list", "^Test")))) {
			o := runOne(t.Context(), binary, test)
			o.made = "informer"
			outcomes = append(outcomes, o)
		}
		t.Logf("%s: %d tests of %s on ours", w.pin.version, len(outcomes), name)
		wrong := of.known.verdict(outcomes)
		require.Empty(t, wrong, strings.Join(wrong, "\n"))
	}
}

package manifest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is wrong with a manifest that is written by half, or by hand, is named by its sign; a value
// is never quoted.
func TestYAMLErrorsSayWhatToLookFor(t *testing.T) {
	const half = ": is the manifest half-written?"
	for _, row := range []struct{ text, want string }{
		{"metadata: {name: hunter2", "line 1: not valid YAML: a brace is not closed, or a comma is missing" + half},
		{"args: [hunter2, ", "line 1: not valid YAML: did not find expected node content"},
		{"args: [hunter2", "line 1: not valid YAML: a bracket is not closed, or a comma is missing" + half},
		{"kind: Pod\nhunter2", "line 3: not valid YAML: a key has no colon" + half},
		{"kind: Pod\nname: \"hunter2", "line 2: not valid YAML: a quote is not closed" + half},
		{"name: !!int hunter2", "line 1: not valid YAML: a value does not fit its tag"},
		{"name: *hunter2", "line 1: not valid YAML: an alias has no anchor"},
		{"name: *h", "line 1: not valid YAML: an alias has no anchor"},
		{"name: &h [*h]", "line 1: not valid YAML: an anchor contains itself"},
		{"? [hunter2]\n: b", "line 1: not valid YAML: a key is a list or a mapping"},
		{"- hunter2\nb: c", "line 1: not valid YAML: did not find expected '-' indicator"},
	} {
		pods, rejected := fromFile.Decode("m.yaml", []byte(row.text))
		require.Empty(t, pods)
		require.Len(t, rejected, 1)
		require.Equal(t, "m.yaml, document 1, "+row.want, rejected[0].Error(), "%q", row.text)
		require.False(t, strings.Contains(rejected[0].Error(), "hunter2"))
	}
}

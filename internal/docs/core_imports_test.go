package docs_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheCoreKnowsNoRules: of the packages that judge or describe objects, the watch cache imports
// no more than the client half gets from apimachinery.
func TestTheCoreKnowsNoRules(t *testing.T) {
	atRoot(t)
	client := imports(t, "./informer")
	for path := range imports(t, "./server/watchcache") {
		if client[path] {
			continue
		}
		for _, rules := range []string{"kube-openapi", "structured-merge-diff", "gnostic", "/internal/podapi", "server/collection", "server/apiserver"} {
			require.NotContains(t, path, rules)
		}
	}
}

// imports are all packages that a package is compiled with.
func imports(t *testing.T, of string) map[string]bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", of).Output()
	require.NoError(t, err)
	found := map[string]bool{}
	for path := range strings.FieldsSeq(string(out)) {
		found[path] = true
	}
	require.Greater(t, len(found), 100)
	return found
}

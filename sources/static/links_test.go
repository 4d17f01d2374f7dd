package static_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPodRulesAreNotLinked guards the direction of imports: a reader of ConfigMaps must not link
// the 4,900 lines that validate pods.
func TestPodRulesAreNotLinked(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").CombinedOutput()
	require.NoError(t, err, "%s", output)
	packages := strings.Fields(string(output))
	require.Contains(t, packages, "github.com/tributary-go/tributary/store")
	for _, name := range packages {
		require.NotContains(t, name, "sources/manifest")
	}
}

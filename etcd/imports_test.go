package etcd_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASourceLinksNoServer: who reads objects in an etcd gets none of the server half, which
// package origin needs.
func TestASourceLinksNoServer(t *testing.T) {
	linked := func(of string) string {
		out, err := exec.Command("go", "list", "-deps", of).Output()
		require.NoError(t, err)
		return string(out)
	}
	const server = "github.com/tributary-go/tributary/server/"
	require.Contains(t, linked("./origin"), server)
	for _, imported := range strings.Fields(linked(".")) {
		require.False(t, strings.HasPrefix(imported, server), imported)
	}
}

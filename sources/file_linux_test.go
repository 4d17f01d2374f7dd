package sources_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
)

const asNobody = "TRIBUTARY_TEST_AS_NOBODY"

// TestFileThatMayNotBeRead is run by somebody to whom permissions apply: for root, by a user of a
// namespace of its own.
func TestFileThatMayNotBeRead(t *testing.T) {
	if os.Geteuid() == 0 && os.Getenv(asNobody) == "" {
		self, err := os.Executable()
		require.NoError(t, err)
		again := exec.Command(self, "-test.run=^TestFileThatMayNotBeRead$", "-test.v")
		again.Env = append(os.Environ(), asNobody+"=1", "TMPDIR="+t.TempDir())
		again.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}},
		}
		output, err := again.CombinedOutput()
		if again.ProcessState == nil {
			t.Skip("no user namespaces here: ", err)
		}
		require.NoError(t, err, string(output))
		require.Contains(t, string(output), "--- PASS")
		return
	}
	path := filepath.Join(folder(t), "a.yaml")
	put(t, path, manifestOf("p", "v1"))
	r := watching(t, filepath.Dir(path))
	r.expect("ADD file p-node-1=v1")

	put(t, path, manifestOf("p", "v2"))
	require.NoError(t, os.Chmod(path, 0))
	r.problem("open " + path + ": permission denied")
	require.Equal(t, 1, r.Status()[0].Pods, "its pod stays")
	require.NoError(t, os.Chmod(path, 0o600))
	r.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
	r.healthy()

	other := filepath.Join(filepath.Dir(path), "b.yaml")
	put(t, filepath.Join(filepath.Dir(path), ".b.yaml"), manifestOf("b", "v1"))
	require.NoError(t, os.Chmod(filepath.Join(filepath.Dir(path), ".b.yaml"), 0))
	require.NoError(t, os.Rename(filepath.Join(filepath.Dir(path), ".b.yaml"), other))
	r.problem("open " + other + ": permission denied")
	require.False(t, r.SafeToPrune(sources.FileSource), "nobody knows what it declares")
	require.NoError(t, os.Remove(other))
	r.healthy()

	require.NoError(t, os.Chmod(filepath.Dir(path), 0))
	defer func() { require.NoError(t, os.Chmod(filepath.Dir(path), 0o700)) }()
	locked := start(t, sources.File(filepath.Dir(path)))
	locked.problem("permission denied")
	require.False(t, locked.Status()[0].Seen, "nobody knows what is in it")
}

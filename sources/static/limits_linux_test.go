package static_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

const inNamespace = "TRIBUTARY_TEST_IN_NAMESPACE"

// inNamespaces runs a test again, as root of namespaces of its own. It returns true in them.
func inNamespaces(t *testing.T, flags uintptr) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		return true
	}
	self, err := os.Executable()
	require.NoError(t, err)
	again := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), inNamespace+"=1")
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | flags,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	output, err := again.CombinedOutput()
	if again.ProcessState == nil {
		t.Skip("no user namespaces here: ", err)
	}
	require.NoError(t, err, string(output))
	require.Contains(t, string(output), "--- PASS")
	return false
}

func setLimit(t *testing.T, name, value string) {
	t.Helper()
	require.NoError(t, os.WriteFile("/proc/sys/user/"+name, []byte(value), 0))
}

// TestLimitsOfInotify reaches each limit, sees the source poll and say so, and raises it again.
func TestLimitsOfInotify(t *testing.T) {
	if !inNamespaces(t, 0) { // the limits are those of a user namespace
		return
	}
	for _, row := range []struct{ limit, want string }{
		{"max_inotify_instances", "(the limit fs.inotify.max_user_instances, or that of open files, is reached)"},
		{"max_inotify_watches", "(the limit fs.inotify.max_user_watches is reached)"},
	} {
		t.Run(row.limit, func(t *testing.T) {
			setLimit(t, row.limit, "0")
			folder := t.TempDir()
			path := filepath.Join(folder, "a.yaml")
			put(t, path, mapOf("a", "1"))
			o := static.File(folder, manifest.Objects[corev1.ConfigMap](configMap), static.WithInterval(10*time.Millisecond))
			next := follow(t, o, shown)
			require.Equal(t, "a=1", next())
			mode := o.Report().Mode
			require.True(t, strings.HasPrefix(mode, "poll every 10ms: "), mode)
			require.Contains(t, mode, row.want)
			require.Empty(t, o.Report().Problems, "polling is slower, and not wrong")
			put(t, path, mapOf("a", "2"))
			require.Equal(t, "a=2", next())
			setLimit(t, row.limit, "1000")
			require.Eventually(t, func() bool { return o.Report().Mode == "inotify" }, patience, time.Millisecond)
		})
	}
}

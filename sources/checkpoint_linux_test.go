package sources

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const killAt = "TRIBUTARY_TEST_KILL_AT"

// TestCheckpointKilledAtEveryByte kills a process, by the signal that cannot be caught, when it has written so many bytes of
// a new state: at each byte of it. What is loaded then is the old state, or the whole new one, and never a third.
func TestCheckpointKilledAtEveryByte(t *testing.T) {
	if limit := os.Getenv(killAt); limit != "" {
		dieAt(t, limit)
	}
	c := newCheckpoint(t.TempDir(), "node-1", APISource)
	whole, err := c.encode(podsAt(t, 1, 2))
	require.NoError(t, err)
	for at := range len(whole) + 1 {
		require.NoError(t, c.save(podsAt(t, 2, 1)))
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCheckpointKilledAtEveryByte$")
		cmd.Env = append(os.Environ(), killAt+"="+strconv.Itoa(at), "TMPDIR="+filepath.Dir(c.path))
		_ = cmd.Run()
		require.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), "at byte %d", at)
		got, err := c.load()
		require.NoError(t, err, "at byte %d", at)
		if at == len(whole) {
			requireState(t, got, 1, 2)
			continue
		}
		left, err := os.ReadFile(c.path + ".tmp")
		require.NoError(t, err)
		require.Equal(t, whole[:at], left)
		requireState(t, got, 2, 1)
	}
}

// dieAt saves a state in a process that can write no more than so many bytes, and dies where it stands.
func dieAt(t *testing.T, limit string) {
	bytes, err := strconv.ParseUint(limit, 10, 64)
	require.NoError(t, err)
	signal.Ignore(syscall.SIGXFSZ)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: bytes}))
	_ = newCheckpoint(os.Getenv("TMPDIR"), "node-1", APISource).save(podsAt(t, 1, 2))
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

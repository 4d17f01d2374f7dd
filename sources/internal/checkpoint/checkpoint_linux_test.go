package checkpoint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

const killAt = "TRIBUTARY_TEST_KILL_AT"

// TestCheckpointKilledAtEveryByte kills a process, by a signal that it does not catch, when it has
// written so many bytes of a new state: at each byte of it. Load then returns the old state, or the
// whole new one, and never a third.
func TestCheckpointKilledAtEveryByte(t *testing.T) {
	if limit := os.Getenv(killAt); limit != "" {
		dieAt(t, limit)
	}
	for worker := range killers {
		t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
			t.Parallel()
			c := newFile(t.TempDir(), "node-1", "")
			whole, err := c.seal(podsAt(1, 2))
			require.NoError(t, err)
			for at := worker; at <= len(whole); at += killers {
				killAtByte(t, c, whole, at)
			}
		})
	}
}

// killers are the processes that are killed at a time. Starting one takes longer than what it does.
const killers = 8

func killAtByte(t *testing.T, c File[pods], whole []byte, at int) {
	require.NoError(t, c.Save(podsAt(2, 1)))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCheckpointKilledAtEveryByte$")
	cmd.Env = append(os.Environ(), killAt+"="+strconv.Itoa(at), "TMPDIR="+filepath.Dir(c.path))
	_ = cmd.Run()
	signal := syscall.SIGXFSZ
	if at == len(whole) {
		signal = syscall.SIGKILL // behind the last byte
	}
	require.Equal(t, signal, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), "at byte %d", at)
	got, err := c.Load()
	require.NoError(t, err, "at byte %d", at)
	if at == len(whole) {
		requireState(t, got, 1, 2)
		return
	}
	paths := temporaries(t, c)
	require.Len(t, paths, 1)
	left, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	require.NoError(t, os.Remove(paths[0]))
	require.Equal(t, whole[:at], left)
	requireState(t, got, 2, 1)
}

// dieAt saves a state in a process that the kernel ends at the first write beyond so many bytes. To
// get there, the action of the signal must be the kernel's again, in place of the Go runtime's.
func dieAt(t *testing.T, limit string) {
	bytes, err := strconv.ParseUint(limit, 10, 64)
	require.NoError(t, err)
	var byDefault [8]uint64 // SIG_DFL, without flags and mask
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGXFSZ), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	require.Zero(t, errno)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: bytes}))
	_ = newFile(os.Getenv("TMPDIR"), "node-1", "").Save(podsAt(1, 2))
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

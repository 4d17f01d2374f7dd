package cluster

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tick is the unit of times in /proc, on every Linux that there is.
const tick = 10 * time.Millisecond

// CPU is the processor time that the server has used so far. See [CPUOf].
func (s *Server) CPU() time.Duration {
	s.cluster.t.Helper()
	return CPUOf(s.cluster.t, s.process.pid)
}

// CPU is the processor time that etcd has used so far. See [CPUOf].
func (e *Etcd) CPU() time.Duration {
	e.process.t.Helper()
	return CPUOf(e.process.t, e.process.pid)
}

// CPUOf is the processor time that a process has used so far, to ten milliseconds. The test is
// skipped where it cannot be had: it needs Linux.
func CPUOf(t testing.TB, pid int) time.Duration {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the processor time of another process is read from /proc")
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	// The name of the program, in brackets, may have spaces.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	sum := 0
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.Atoi(string(field))
		require.NoError(t, err)
		sum += n
	}
	return time.Duration(sum) * tick
}

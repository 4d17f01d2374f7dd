package cluster

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func startSleep(t *testing.T) *Process {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	p := NewProcess(t, "sleep", sleep, []string{"1000"})
	p.Start()
	return p
}

// alive reports whether a process runs: one that has ended, but that nobody has waited for, does
// not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !containsZombie(stat)
}

func containsZombie(stat []byte) bool {
	for i := len(stat) - 1; i >= 0; i-- { // the state follows the name in parentheses
		if stat[i] == ')' {
			return i+2 < len(stat) && stat[i+2] == 'Z'
		}
	}
	return false
}

func TestProcessIsKilledAndStartedAgain(t *testing.T) {
	p := startSleep(t)
	first := p.pid
	require.True(t, alive(first))
	p.Kill()
	require.False(t, alive(first))
	p.Kill() // no harm
	p.Start()
	require.NotEqual(t, first, p.pid)
}

func TestProcessEndsWithItsTest(t *testing.T) {
	var pid int
	t.Run("inner", func(t *testing.T) { pid = startSleep(t).pid })
	require.False(t, alive(pid))
}

// TestProcessEndsWithItsParent runs this test once more in a process that is killed before it can
// clean up.
func TestProcessEndsWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	const inner = "TRIBUTARY_E2E_INNER"
	if os.Getenv(inner) != "" {
		p := startSleep(t)
		_, _ = os.Stdout.WriteString("\n" + strconv.Itoa(p.pid) + "\n")
		select {}
	}
	parent := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	parent.Env = append(os.Environ(), inner+"=1")
	output, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	child := 0
	for lines := bufio.NewScanner(output); child == 0 && lines.Scan(); {
		child, _ = strconv.Atoi(lines.Text())
	}
	require.NotZero(t, child)
	require.True(t, alive(child))
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Eventually(t, func() bool { return !alive(child) }, 5*time.Second, 10*time.Millisecond)
}

func TestFreeAddressIsNoClientsPort(t *testing.T) {
	for range 100 {
		_, port, err := net.SplitHostPort(FreeAddress(t))
		require.NoError(t, err)
		n, err := strconv.Atoi(port)
		require.NoError(t, err)
		require.Less(t, n, 32768)
		require.Greater(t, n, 1024)
	}
}

func TestBuildLockIsFreeAfterUnlock(t *testing.T) {
	path := t.TempDir() + "/lock"
	unlock, err := lock(path)
	require.NoError(t, err)
	taken := make(chan func())
	go func() {
		again, _ := lock(path)
		taken <- again
	}()
	select {
	case <-taken:
		t.Fatal("taken twice")
	case <-time.After(50 * time.Millisecond):
	}
	unlock()
	(<-taken)()
}

package cluster

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Process is one server that can be killed and started again with the same arguments. It ends with
// the test.
type Process struct {
	t           testing.TB
	name        string
	binary      string
	arguments   []string
	environment []string
	log         string

	pid   int           // 0 while it does not run
	ended chan struct{} // closed when it has
}

// NewProcess prepares a process. Entries of the environment, such as "A=b", are added to the
// test's.
func NewProcess(t testing.TB, name, binary string, arguments []string, environment ...string) *Process {
	t.Helper()
	p := &Process{t: t, name: name, binary: binary, arguments: arguments, environment: environment, log: filepath.Join(t.TempDir(), name+".log")}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the end of %s's log:\n%s", name, tail(p.log, 8))
		}
	})
	return p
}

// Start begins the process in a process group of its own.
func (p *Process) Start() {
	p.t.Helper()
	require.Zero(p.t, p.pid, "%s is running", p.name)
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(p.t, err)
	command := exec.Command(p.binary, p.arguments...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), p.environment...)
	command.SysProcAttr = ownGroup()
	began, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		defer log.Close()
		// The kernel ends the child when the thread that made it ends, so that thread is kept for
		// the child's life.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		began <- err
		if err == nil {
			_ = command.Wait() // ended by a signal, as a rule
		}
	}()
	require.NoError(p.t, <-began, "start %s", p.name)
	p.pid, p.ended = command.Process.Pid, ended
}

// Kill ends the process group at once and waits for its end. It does nothing when the process does
// not run.
func (p *Process) Kill() {
	if p.pid == 0 {
		return
	}
	p.Signal(syscall.SIGKILL)
	<-p.ended
	p.pid = 0
}

// Signal sends a signal to the process group. A process that has ended by itself is no failure
// here.
func (p *Process) Signal(s syscall.Signal) {
	if p.pid != 0 && !p.HasEnded() {
		_ = syscall.Kill(-p.pid, s)
	}
}

// Ended is closed when the process that was started last has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// HasEnded reports whether the process has ended by itself.
func (p *Process) HasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// randomPort is a port below the range of outgoing connections on Linux (32768) and elsewhere
// (49152).
func randomPort() string { return strconv.Itoa(15000 + rand.IntN(15000)) }

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

// process is one server that can be killed and started again with the same arguments. It ends with
// the test.
type process struct {
	t         testing.TB
	name      string
	binary    string
	arguments []string
	log       string

	pid   int           // 0 while it does not run
	ended chan struct{} // closed when it has
}

func newProcess(t testing.TB, name, binary string, arguments []string) *process {
	t.Helper()
	p := &process{t: t, name: name, binary: binary, arguments: arguments, log: filepath.Join(t.TempDir(), name+".log")}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the end of %s's log:\n%s", name, tail(p.log, 8))
		}
	})
	return p
}

// start begins the process in a process group of its own.
func (p *process) start() {
	p.t.Helper()
	require.Zero(p.t, p.pid, "%s is running", p.name)
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(p.t, err)
	command := exec.Command(p.binary, p.arguments...)
	command.Stdout, command.Stderr = log, log
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

// kill ends the process group at once and waits for its end. It does nothing when the process does
// not run.
func (p *process) kill() {
	if p.pid == 0 {
		return
	}
	p.signal(syscall.SIGKILL)
	<-p.ended
	p.pid = 0
}

// signal sends a signal to the process group. A process that has ended by itself is no failure
// here.
func (p *process) signal(s syscall.Signal) {
	if p.pid != 0 && !p.hasEnded() {
		_ = syscall.Kill(-p.pid, s)
	}
}

// hasEnded reports whether the process has ended by itself.
func (p *process) hasEnded() bool {
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

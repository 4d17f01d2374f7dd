package cluster

import "syscall"

// ownGroup makes a child the leader of a group, and has the kernel kill it when its parent dies of
// whatever cause.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

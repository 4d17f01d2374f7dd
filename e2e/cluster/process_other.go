//go:build unix && !linux

package cluster

import "syscall"

// ownGroup makes a child the leader of a group. There is no way to tie it to the life of its
// parent.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

//go:build !unix

package apiserver

import (
	"net"
	"syscall"
)

// rawConnection is nil: connections are not probed here.
func rawConnection(net.Conn) syscall.RawConn { return nil }

type connectionProbe struct{}

func (*connectionProbe) gone(syscall.RawConn) bool { return false }

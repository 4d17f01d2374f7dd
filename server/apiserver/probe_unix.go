//go:build unix

package apiserver

import (
	"net"
	"syscall"
)

// rawConnection is the form of a connection that can be probed; nil if it has none.
func rawConnection(connection net.Conn) syscall.RawConn {
	if c, ok := connection.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// connectionProbe reads bytes that a client should not send, without waiting for them.
type connectionProbe struct {
	unwanted [4 << 10]byte
	ended    bool
}

// gone reports whether a connection has ended. It does not block.
func (p *connectionProbe) gone(c syscall.RawConn) bool {
	return c.Read(p.read) != nil || p.ended
}

func (p *connectionProbe) read(descriptor uintptr) (done bool) {
	n, err := syscall.Read(int(descriptor), p.unwanted[:])
	p.ended = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
	return true
}

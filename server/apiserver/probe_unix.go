//go:build unix

package apiserver

import (
	"net"
	"syscall"
)

// rawConnection is what a connection is probed by; nil if that cannot be.
func rawConnection(connection net.Conn) syscall.RawConn {
	if c, ok := connection.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// connectionProbe reads what a client should not send, without waiting for it.
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

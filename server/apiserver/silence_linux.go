package apiserver

import "syscall"

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), which package syscall does not name.
const tcpUserTimeout = 18

// endUnanswered has TCP repeat an event to a silent client for as long as a write may take. By
// default Linux does so for some 15 minutes, and sends no keep-alive meanwhile.
func endUnanswered(descriptor uintptr) {
	_ = syscall.SetsockoptInt(int(descriptor), syscall.IPPROTO_TCP, tcpUserTimeout, int(writePatience.Milliseconds()))
}

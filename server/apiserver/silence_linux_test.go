package apiserver_test

import (
	"context"
	"net"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestASilentClientIsGivenUp: TCP is told to give up the client of a parked watch after 30 seconds
// without an answer, be it to a keep-alive or to an event.
func TestASilentClientIsGivenUp(t *testing.T) {
	r := newParkingRig(t)
	accepted := make(chan net.Conn, 1)
	listener := httptest.NewUnstartedServer(r.Server)
	listener.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		accepted <- c
		return ctx
	}
	listener.Start()
	defer listener.Close()
	defer r.Close()
	r.url = listener.URL
	r.connectionOf(t, "")
	require.Equal(t, 1, r.Parked())
	raw, err := (<-accepted).(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	option := func(name int) (value int) {
		require.NoError(t, raw.Control(func(descriptor uintptr) {
			var err error
			value, err = syscall.GetsockoptInt(int(descriptor), syscall.IPPROTO_TCP, name)
			require.NoError(t, err)
		}))
		return value
	}
	const userTimeout = 18
	idle, interval, count := option(syscall.TCP_KEEPIDLE), option(syscall.TCP_KEEPINTVL), option(syscall.TCP_KEEPCNT)
	require.Equal(t, 30, idle+interval*count)
	require.Equal(t, 30_000, option(userTimeout))
}

package netfault_test

import (
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tributary-go/tributary/e2e/netfault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo sends back what it gets.
func echo(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				_, _ = io.Copy(connection, connection)
			}()
		}
	}()
	return listener.Addr().String()
}

// dial connects through the proxy, with a few bytes sent back and forth.
func dial(t *testing.T, p *netfault.Proxy) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", p.Address())
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	require.NoError(t, say(connection, "hello"))
	return connection
}

// say sends text and expects it back within two seconds.
func say(connection net.Conn, text string) error {
	if _, err := io.WriteString(connection, text); err != nil {
		return err
	}
	return hear(connection, text, 2*time.Second)
}

func hear(connection net.Conn, text string, within time.Duration) error {
	_ = connection.SetReadDeadline(time.Now().Add(within))
	_, err := io.ReadFull(connection, make([]byte, len(text)))
	return err
}

func TestPassesDataOn(t *testing.T) {
	p := netfault.Listen(t, echo(t))
	require.NoError(t, say(dial(t, p), "again"))
	dial(t, p)
	require.Equal(t, 2, p.Accepted())
}

func TestCutEndsConnectionsInOrder(t *testing.T) {
	p := netfault.Listen(t, echo(t))
	connection := dial(t, p)
	p.Cut()
	require.ErrorIs(t, hear(connection, "x", time.Second), io.EOF)
	dial(t, p)
}

func TestResetBreaksConnectionsOff(t *testing.T) {
	p := netfault.Listen(t, echo(t))
	connection := dial(t, p)
	p.Reset()
	require.ErrorIs(t, hear(connection, "x", time.Second), syscall.ECONNRESET)
	dial(t, p)
}

func TestCutAfterStopsInTheMiddle(t *testing.T) {
	p := netfault.Listen(t, echo(t))
	connection := dial(t, p)
	p.CutAfter(3)
	_, err := io.WriteString(connection, "0123456789")
	require.NoError(t, err)
	got, err := io.ReadAll(connection)
	require.NoError(t, err)
	require.Equal(t, "012", string(got))
}

func TestBlackholeSwallowsWithoutClosing(t *testing.T) {
	p := netfault.Listen(t, echo(t))
	connection := dial(t, p)
	p.Blackhole()
	err := say(connection, "anybody there?")
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout(), "the connection must stay open")
	dial(t, p) // a new one works
}

func TestPauseHoldsBackUntilResume(t *testing.T) {
	p := netfault.Listen(t, echo(t))
	connection := dial(t, p)
	p.Pause()
	_, err := io.WriteString(connection, "later")
	require.NoError(t, err)
	require.Error(t, hear(connection, "later", 100*time.Millisecond))
	p.Resume()
	require.NoError(t, hear(connection, "later", 2*time.Second))
}

func TestDelayAndThrottleTakeTheirTime(t *testing.T) {
	p := netfault.Listen(t, echo(t))
	connection := dial(t, p)
	for name, slow := range map[string]func(){
		"delay":    func() { p.Throttle(0); p.Delay(50 * time.Millisecond) },
		"throttle": func() { p.Delay(0); p.Throttle(100) }, // five bytes: 50 ms
	} {
		slow()
		began := time.Now()
		require.NoError(t, say(connection, "12345"))
		require.GreaterOrEqual(t, time.Since(began), 100*time.Millisecond, name) // there and back
	}
}

func TestSwitchSendsLaterConnectionsElsewhere(t *testing.T) {
	first := echo(t)
	nowhere, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nowhere.Close())
	p := netfault.Listen(t, first)
	open := dial(t, p)
	p.Switch(nowhere.Addr().String())
	later, err := net.Dial("tcp", p.Address())
	require.NoError(t, err)
	defer later.Close()
	require.Error(t, say(later, "x"))
	require.NoError(t, say(open, "x"), "open connections stay")
}

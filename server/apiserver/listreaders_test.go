//go:build !race

package apiserver_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestBadReadersOfListsLeaveNothingBehind: clients of lists that never read, that read a byte after
// each write, or that come and go many times. After them, memory and goroutines are what they were.
func TestBadReadersOfListsLeaveNothingBehind(t *testing.T) {
	const each, pods, writes, most = 50, 100, 20, 8 << 20
	visits := 20_000
	if testing.Short() {
		visits = 500
	}
	r := newRig(t)
	var last *corev1.Pod
	for i := range pods { // more than the connection's buffers take
		fat := pod(fmt.Sprint("fat-", i))
		fat.Annotations = map[string]string{"text": strings.Repeat("x", 64<<10)}
		last = r.create(t, fat)
	}
	host := strings.TrimPrefix(r.url, "http://")
	open := func(path string) net.Conn {
		connection, err := net.Dial("tcp", host)
		require.NoError(t, err)
		require.NoError(t, connection.(*net.TCPConn).SetReadBuffer(4<<10))
		_, err = fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		require.NoError(t, err)
		return connection
	}
	readOne := func(connection net.Conn) {
		_, err := connection.Read(make([]byte, 1))
		require.NoError(t, err)
	}
	require.NotEmpty(t, r.get(t, "/api/v1/pods").body)
	r.web.CloseIdleConnections()
	before, goroutines := liveHeap(), runtime.NumGoroutine()

	var silent, slow []net.Conn
	for range each {
		silent, slow = append(silent, open("/api/v1/pods")), append(slow, open("/api/v1/pods"))
	}
	for range writes {
		for _, connection := range slow {
			readOne(connection)
		}
		last = r.relabel(t, last)
		slow = append(slow, open("/api/v1/pods")) // a list of this state
	}
	for _, connection := range append(silent, slow...) {
		require.NoError(t, connection.Close())
	}
	var visitors sync.WaitGroup
	for range 8 {
		visitors.Go(func() {
			for range visits / 8 {
				connection := open("/api/v1/pods?limit=2")
				if _, err := io.ReadFull(connection, make([]byte, 12)); err != nil {
					t.Error(err)
				}
				_ = connection.Close()
			}
		})
	}
	visitors.Wait()
	const ofTheCheck = 2 // eventually has a goroutine for the condition
	eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+ofTheCheck }, "the lists end")
	live := liveHeap() - before
	t.Logf("%d KB more are live", live>>10)
	require.Less(t, live, int64(most))
	runtime.KeepAlive(r)
}

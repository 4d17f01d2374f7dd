//go:build !race

package apiserver_test

import (
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParkedWatchesTakeFewBytes: heap and stacks of a parked watch, with the little that the client
// of the test has for it.
func TestParkedWatchesTakeFewBytes(t *testing.T) {
	const watches, perConnection = 2000, 200
	path := func(version string) string { return "/api/v1/pods?watch=1&resourceVersion=" + version }
	for name, c := range map[string]struct {
		newRig func(testing.TB) *rig
		open   func(t *testing.T, r *rig, version string)
		most   int64
	}{
		"HTTP/1.1": {
			func(t testing.TB) *rig { return newParkingRig(t) },
			func(t *testing.T, r *rig, version string) {
				for range perConnection {
					r.connectionOf(t, "resourceVersion="+version)
				}
			},
			4 << 10,
		},
		"HTTP/2": {
			func(t testing.TB) *rig { return newStreamParkingRig(t) },
			func(t *testing.T, r *rig, version string) {
				connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
				require.NoError(t, err)
				t.Cleanup(func() { connection.Close() })
				framer := beginHTTP2(t, connection, 1<<20)
				go func() { _, _ = io.Copy(io.Discard, struct{ io.Reader }{connection}) }()
				for i := range uint32(perConnection) {
					askHTTP2(t, framer, 2*i+1, path(version))
				}
			},
			10 << 10,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.newRig(t)
			a := r.create(t, pod("a"))
			c.open(t, r, a.ResourceVersion) // what the first ones make stays
			eventually(t, func() bool { return r.Parked() == perConnection }, "the first are parked")
			goroutines := runtime.NumGoroutine()
			heap, stack := liveHeap(), int64(stacks())
			for range watches / perConnection {
				c.open(t, r, a.ResourceVersion)
			}
			const ofAConnection = 5
			eventually(t, func() bool {
				return r.Parked() == watches+perConnection &&
					runtime.NumGoroutine() <= goroutines+ofAConnection*watches/perConnection+2
			}, "all are parked")
			heap, stack = (liveHeap()-heap)/watches, (int64(stacks())-stack)/watches
			t.Logf("a watch has %d bytes of heap and %d of stacks", heap, stack)
			require.LessOrEqual(t, heap+stack, c.most)
			runtime.KeepAlive(r)
		})
	}
}

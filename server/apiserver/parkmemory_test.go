//go:build !race

package apiserver_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParkedWatchesTakeFewBytes: heap and stacks of a parked watch, with the little that the client
// of the test has for it.
func TestParkedWatchesTakeFewBytes(t *testing.T) {
	const watches, first, most = 2000, 200, 4 << 10
	r := newParkingRig(t)
	a := r.create(t, pod("a"))
	open := func(n int) {
		for range n {
			r.connectionOf(t, "resourceVersion="+a.ResourceVersion)
		}
	}
	open(first) // what these make stays
	eventually(t, func() bool { return r.Parked() == first }, "the first are parked")
	goroutines := runtime.NumGoroutine()
	heap, stack := liveHeap(), int64(stacks())
	open(watches)
	const ofTheCheck = 2
	eventually(t, func() bool {
		return r.Parked() == first+watches && runtime.NumGoroutine() <= goroutines+ofTheCheck
	}, "all are parked")
	heap, stack = (liveHeap()-heap)/watches, (int64(stacks())-stack)/watches
	t.Logf("a watch has %d bytes of heap and %d of stacks", heap, stack)
	require.LessOrEqual(t, heap+stack, int64(most))
	runtime.KeepAlive(r)
}

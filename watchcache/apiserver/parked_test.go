//go:build unix

package apiserver

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// hungUp is a watch whose client has gone.
type hungUp struct {
	syscall.RawConn
	among *parkedWatches
}

func (h *hungUp) connectionToProbe() syscall.RawConn { return h }
func (h *hungUp) Read(func(uintptr) bool) error      { return errors.New("the connection has ended") }
func (h *hungUp) hangUp()                            { h.among.leave(h) }

// TestParkedWatchesAreProbed within the time that ParkIdleWatches names, again and again.
func TestParkedWatchesAreProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all parkedWatches
		for range 3 {
			for range 5 {
				require.True(t, all.enter())
				all.add(&hungUp{among: &all})
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.Zero(t, all.count)
		}
		require.NoError(t, all.wait(t.Context()))
		require.False(t, all.enter())
	})
}

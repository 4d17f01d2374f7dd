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

// ended is a connection whose client has gone.
type ended struct{ syscall.RawConn }

func (ended) Read(func(uintptr) bool) error { return errors.New("the connection has ended") }

// TestParkedWatchesAreProbed within the time that ParkIdleWatches names, again and again.
func TestParkedWatchesAreProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all parkedWatches
		for range 3 {
			for range 5 {
				require.True(t, all.enter())
				h := &hijacked{raw: ended{}}
				h.hangUp = func() { all.leave(h) }
				all.watchOver(h)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.Zero(t, all.count)
		}
		require.NoError(t, all.wait(t.Context()))
		require.False(t, all.enter())
	})
}

package refs

import (
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/reflector"
)

// TestATurnTellsItsOwnNews, whatever has become of the gate when it is logged: the request of
// another name may have failed since.
func TestATurnTellsItsOwnNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(defaults(), &sync.Mutex{})
		enter := func() *turn {
			now, err := g.enter(t.Context(), nil)
			require.NoError(t, err)
			time.Sleep(time.Millisecond)
			return now
		}
		reset := syscall.ECONNRESET
		news, answers := enter().leave(reset)
		require.True(t, news)
		require.False(t, answers)
		well, failing := enter(), enter()
		news, answers = well.leave(nil)
		require.True(t, news)
		require.True(t, answers)
		news, answers = failing.leave(reset)
		require.True(t, news)
		require.False(t, answers)
		require.Equal(t, reflector.Disconnected, g.failure.class)
	})
}

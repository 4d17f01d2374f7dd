package apiserver

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestWritesTakeTurns: as many writes run at once as their bodies have room; the others follow in
// the order of their arrival, and are refused if that takes too long.
func TestWritesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTurns()
		var under []turn
		for range bodiesAtOnce / smallestBody {
			one, err := all.take(t.Context(), 1)
			require.NoError(t, err)
			under = append(under, one)
		}
		var large, small atomic.Int64
		begin := func(into *atomic.Int64, bytes int) {
			go func() {
				if one, err := all.take(t.Context(), bytes); err == nil {
					into.Store(int64(one))
				}
			}()
			synctest.Wait()
		}
		begin(&large, 2*smallestBody)
		begin(&small, 1)
		all.give(under[0])
		synctest.Wait()
		require.Zero(t, large.Load(), "there is room for one half")
		require.Zero(t, small.Load(), "it does not overtake")
		all.give(under[1])
		synctest.Wait()
		require.NotZero(t, large.Load())
		require.Zero(t, small.Load())
		all.give(under[2])
		synctest.Wait()
		require.NotZero(t, small.Load())

		began := time.Now()
		_, err := all.take(t.Context(), 1)
		require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
		seconds, wait := apierrors.SuggestsClientDelay(err)
		require.True(t, wait)
		require.Equal(t, 1, seconds)
		require.Equal(t, turnPatience, time.Since(began))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = all.take(gone, 1)
		require.Error(t, err)

		all.give(turn(large.Load()))
		all.give(turn(small.Load()))
		for _, one := range under[3:] {
			all.give(one)
		}
		synctest.Wait()
		require.Empty(t, all.places)
	})
}

package watchcache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// TestProofTellsOfItsFailure: an upstream that fails, and a copy that does not reach its version,
// show in the proof, since the first question that had no answer. The proof is well again when the
// upstream answers, or the copy has the version.
func TestProofTellsOfItsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{}
		c := copyOf(t, u)
		looked := func() watchcache.Proof {
			c.Proof()
			synctest.Wait()
			return c.Proof()
		}
		require.Equal(t, watchcache.Proof{State: watchcache.Proven}, looked())

		time.Sleep(time.Second)
		down := errors.New("down")
		u.err = down
		failing := watchcache.Proof{State: watchcache.Failing, Since: time.Now(), Err: down}
		require.Equal(t, failing, looked())
		time.Sleep(5 * time.Second)
		require.Equal(t, failing, looked())
		u.err = nil
		time.Sleep(time.Second)
		require.Equal(t, watchcache.Proven, looked().State)

		u.writes(9)
		began := time.Now()
		require.Error(t, c.WaitFresh(t.Context()))
		p := c.Proof()
		require.Equal(t, watchcache.Failing, p.State)
		require.Equal(t, began, p.Since)
		require.ErrorContains(t, p.Err, "Too large resource version: 9, current: 5")
		require.NoError(t, c.Add(stored("b", 9)))
		require.Equal(t, watchcache.Proof{State: watchcache.Proven}, c.Proof())
	})
}

// TestImpatientReadersLearnThatTheUpstreamIsSilent: a reader who leaves before the upstream's time
// is over does not hide its silence. Readers who come meanwhile wait no longer than that.
func TestImpatientReadersLearnThatTheUpstreamIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{takes: time.Hour}
		c := copyOf(t, u)
		began := time.Now()
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.WaitFresh(hurried), context.DeadlineExceeded)
		require.ErrorContains(t, c.WaitFresh(t.Context()), "did not answer in time")
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Equal(t, watchcache.Proof{State: watchcache.Failing, Since: began, Err: context.DeadlineExceeded}, c.Probe(hurried))
	})
}

// TestCachesWithoutAnUpstream: one is the origin of its objects, the other a copy that nothing
// proves.
func TestCachesWithoutAnUpstream(t *testing.T) {
	require.Equal(t, watchcache.Proof{State: watchcache.Origin}, newCache(t, watchcache.WithRevision(watchcache.NewRevision())).Proof())
	copied := newCache(t)
	require.NoError(t, copied.Replace(store.Items(stored("a", 5)), store.At("5")))
	require.Equal(t, watchcache.Proof{State: watchcache.Unproven}, copied.Probe(t.Context()))
}

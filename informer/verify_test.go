package informer_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/informer"
)

func TestVerifyFindsNothingWhileAllIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a", "b")
		i := running(t, s)
		s.put("a")
		d, err := i.Verify(t.Context())
		require.NoError(t, err)
		require.Equal(t, informer.Drift{At: time.Now(), ResourceVersion: "3", Objects: 2}, d)
		require.Equal(t, d, i.Status().Drift)
	})
}

// TestVerifyFindsWhatTheServerNeverTold: the server makes three changes without an event, and sends
// a bookmark that denies them.
func TestVerifyFindsWhatTheServerNeverTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("stale", "extra", "well")
		reports := make(chan informer.Drift, 10)
		i := running(t, s, informer.WithVerification(time.Minute, func(d informer.Drift, err error) {
			require.NoError(t, err)
			reports <- d
		}))
		s.silence()
		s.put("stale")
		s.remove("extra")
		s.put("missing")
		s.lose()
		s.disconnect(false)
		time.Sleep(10 * time.Second) // simulated time: the reflector backs off
		s.bookmark()
		d := <-reports
		require.Equal(t, 3, d.Count)
		require.ElementsMatch(t, []informer.Difference{
			{Key: "ns/stale", Server: "4", Store: "1"}, {Key: "ns/extra", Store: "2"}, {Key: "ns/missing", Server: "6"},
		}, d.Differences)
		require.Contains(t, i.Snapshot().ResourceVersion(), "7")
		_, held := i.Snapshot().Get("ns/missing")
		require.False(t, held, "the store is not touched")
	})
}

// TestOtherContentUnderTheSameVersion: content changes without an event. Verify names the field,
// and the next relist tells handlers.
func TestOtherContentUnderTheSameVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a", "b")
		i := running(t, s)
		var told []informer.Event[*corev1.Pod]
		h, err := i.AddHandler(func(e informer.Event[*corev1.Pod]) { told = append(told, e) })
		require.NoError(t, err)
		require.NoError(t, h.WaitSynced(t.Context()))
		synctest.Wait()
		told = nil
		s.mu.Lock()
		changed := s.pods["a"].DeepCopy()
		changed.Spec.SchedulerName = "secret-value"
		s.pods["a"] = changed
		s.mu.Unlock()
		d, err := i.Verify(t.Context())
		require.NoError(t, err)
		require.Equal(t, []informer.Difference{{Key: "ns/a", Server: "1", Store: "1", Path: "spec.schedulerName"}}, d.Differences)
		require.Empty(t, told, "it touches nothing")

		s.mu.Lock()
		s.floor = math.MaxInt // no watch can be resumed
		s.mu.Unlock()
		s.disconnect(false)
		time.Sleep(10 * time.Second) // simulated time: the reflector backs off, and lists
		synctest.Wait()
		require.Len(t, told, 1)
		require.Equal(t, informer.Updated, told[0].Type)
		require.Equal(t, told[0].Old.ResourceVersion, told[0].New.ResourceVersion)
		require.Equal(t, "secret-value", told[0].New.Spec.SchedulerName)
		d, err = i.Verify(t.Context())
		require.NoError(t, err)
		require.Zero(t, d.Count)
	})
}

// TestPanicInAReportEndsRun: the panic ends Run as a handler's does, and not the process.
func TestPanicInAReportEndsRun(t *testing.T) {
	for what, report := range map[string]func(){
		"panicked: oh":        func() { panic("oh") },
		"ended its goroutine": runtime.Goexit,
	} {
		synctest.Test(t, func(t *testing.T) {
			i := informer.New[*corev1.Pod](newServer("a"), informer.WithVerification(time.Minute, func(informer.Drift, error) { report() }))
			require.EqualError(t, i.Run(t.Context()), "informer: the function given to WithVerification "+what)
		})
	}
}

func TestVerifyOfAStoreThatIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		i := running(t, s)
		s.silence()
		s.put("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := i.Verify(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "does not reach")
		require.Zero(t, i.Status().Drift)
		require.Equal(t, err, i.Status().DriftErr)
	})
}

func TestVerifyWhereVersionsHaveNoOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.version = opaque
		s.put("a")
		i := running(t, s)
		d, err := i.Verify(t.Context())
		require.NoError(t, err)
		require.Zero(t, d.Count)
		s.silence()
		s.put("a")
		_, err = i.Verify(t.Context())
		require.ErrorContains(t, err, "cannot be compared")
	})
}

func TestVerifyBeforeRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := informer.New[*corev1.Pod](newServer()).Verify(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

package informer_test

import (
	"context"
	"maps"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
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
		i := running(t, s, informer.WithVerification(4*time.Second, func(d informer.Drift, err error) {
			require.NoError(t, err)
			reports <- d
		}))
		s.silence()
		s.put("stale")
		s.remove("extra")
		s.put("missing")
		s.lose()
		s.disconnect(false)
		time.Sleep(3 * time.Second) // simulated time: the reflector backs off, and no probe is due
		s.bookmark()
		d := <-reports
		require.Equal(t, 3, d.Count)
		require.ElementsMatch(t, []informer.Difference{
			{Key: "ns/stale", Server: "4", Store: "1"}, {Key: "ns/extra", Store: "2"}, {Key: "ns/missing", Server: "6"},
		}, d.Differences)
		time.Sleep(time.Second) // simulated time
		require.Equal(t, s.now(), contentOf(maps.Values(maps.Collect(i.Snapshot().All()))), "the relist heals it")
	})
}

// TestOtherContentUnderTheSameVersion: content changes without an event. Verify names the field,
// and its relist tells handlers.
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
		time.Sleep(time.Second) // simulated time: after a watch that has just begun comes a pause
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

// cutAfterVerify refuses everything once a verification has its list.
type cutAfterVerify struct {
	*refusable
	armed atomic.Bool
}

func (c *cutAfterVerify) List(ctx context.Context, o metav1.ListOptions) listwatch.List[*corev1.Pod] {
	list := c.refusable.List(ctx, o)
	items := list.Items
	list.Items = func(yield func(*corev1.Pod, error) bool) {
		items(yield)
		if o.Limit != 1 && o.Limit != 300 && c.armed.Swap(false) {
			c.refuse(true)
		}
	}
	return list
}

// TestDriftIsNotRightUntilTheRelist: a copy known to differ is not ready, while the relist fails,
// too. The relist that succeeds tells the handlers, and ends all that showed the drift.
func TestDriftIsNotRightUntilTheRelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a", "b")
		source := &cutAfterVerify{refusable: &refusable{podSource: s}}
		i := informer.New[*corev1.Pod](source)
		start(t, i)
		var r recorder
		add(t, i, r.handle)
		require.NoError(t, i.WaitSynced(t.Context()))
		require.Len(t, r.take(), 2)
		drift := func() (objects float64) {
			for sample := range i.Samples("pods") {
				if sample.Metric.Name == "tributary_informer_drift_objects" {
					objects = sample.Value
				}
			}
			return objects
		}
		s.mu.Lock()
		changed := s.pods["a"].DeepCopy()
		changed.Spec.SchedulerName = "secret-value"
		s.pods["a"] = changed
		s.mu.Unlock()

		source.armed.Store(true)
		d, err := i.Verify(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, d.Count)
		for range 5 { // at once, and during the attempts at a relist
			require.ErrorContains(t, i.Ready(time.Hour), "the copy differs from the server: "+
				"a verification found 1 different objects, such as ns/a (in spec.schedulerName)")
			require.NotContains(t, i.Ready(time.Hour).Error(), "secret-value")
			require.Equal(t, reflector.Drift, i.Status().Verdict(time.Hour).Class)
			require.Equal(t, []string{"drift"}, notRight(i))
			require.Equal(t, d, i.Status().Drift)
			require.Equal(t, float64(1), drift())
			time.Sleep(5 * time.Second) // simulated time
		}
		require.ErrorContains(t, i.Ready(time.Hour), "pods is forbidden")
		require.Empty(t, r.take())

		source.refuse(false)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"updated ns/a 1>1 missed"}, r.take())
		require.NoError(t, i.Ready(time.Minute))
		require.NoError(t, i.Status().Err)
		require.Empty(t, notRight(i))
		require.Zero(t, drift())
		d.Healed = true
		require.Equal(t, d, i.Status().Drift, "the last result stays, and is told to be over")
		d, err = i.Verify(t.Context())
		require.NoError(t, err)
		require.Zero(t, d.Count)
	})
}

// TestDriftHealsByItself: the verification makes the relist at once, before any probe.
func TestDriftHealsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a", "b")
		i := running(t, s, informer.WithVerification(10*time.Second, nil))
		s.mu.Lock()
		delete(s.pods, "b")
		s.mu.Unlock()
		time.Sleep(9 * time.Second) // simulated time
		require.Equal(t, 2, i.Snapshot().Len())
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, i.Snapshot().Len())
		require.NoError(t, i.Ready(3*time.Minute))
		require.Equal(t, 1, i.Status().Lists[reflector.Drift])
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

// TestVerifyOfAListWithoutAnEnd: a server, or a proxy, that ignores the continue token is said.
func TestVerifyOfAListWithoutAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endless := false
		i := informer.New(listwatch.Intercept(newServer("a"), func(_ metav1.ListOptions, list listwatch.List[*corev1.Pod]) listwatch.List[*corev1.Pod] {
			meta := list.Meta
			list.Meta = func() metav1.ListMeta {
				all := meta()
				if endless {
					all.Continue = "again"
				}
				return all
			}
			return list
		}, nil))
		start(t, i)
		require.NoError(t, i.WaitSynced(t.Context()))
		synctest.Wait()
		endless = true
		_, err := i.Verify(t.Context())
		require.ErrorContains(t, err, "the list has no end: the continue token of page 1 came again after page 2")
		require.Equal(t, reflector.WrongAnswer, reflector.Classify(err))
	})
}

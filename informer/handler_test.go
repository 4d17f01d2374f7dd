package informer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/informer"
)

type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) handle(e podEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, show(e))
}

// take returns the lines since its last call, once all goroutines of the bubble are blocked.
func (r *recorder) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines
	r.lines = nil
	return lines
}

// show formats an event, such as "updated ns/a 1>2".
func show(e podEvent) string {
	line := fmt.Sprintf("%s %s ", e.Type, e.Key)
	if e.Old != nil {
		line += e.Old.ResourceVersion
	}
	line += ">"
	if e.New != nil {
		line += e.New.ResourceVersion
	}
	if e.Initial {
		line += " initial"
	}
	if e.Missed {
		line += " missed"
	}
	return line
}

// adder is an informer or a union.
type adder interface {
	AddHandler(func(podEvent), ...informer.HandlerOption) (*podHandler, error)
}

func add(t testing.TB, i adder, handle func(podEvent), options ...informer.HandlerOption) *podHandler {
	t.Helper()
	h, err := i.AddHandler(handle, options...)
	require.NoError(t, err)
	return h
}

func TestEventsOfAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		i := running(t, s)
		var r recorder
		h := add(t, i, r.handle)
		require.NoError(t, h.WaitSynced(t.Context()))
		s.put("a")
		s.put("b")
		s.remove("b")
		require.Equal(t, []string{
			"added ns/a >1 initial", "updated ns/a 1>2", "added ns/b >3", "deleted ns/b 4>",
		}, r.take(), "a deletion has the final state, newer than what was told")
	})
}

func TestRecreatedWhileDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("kept", "gone", "again")
		i := running(t, s)
		var r recorder
		add(t, i, r.handle)
		require.Len(t, r.take(), 3)
		s.silence()
		s.remove("gone")
		s.remove("again")
		s.put("again")
		s.put("kept")
		s.disconnect(true)
		time.Sleep(5 * time.Second) // simulated time: the reflector backs off
		require.ElementsMatch(t, []string{
			"deleted ns/gone 2> missed", "deleted ns/again 3> missed", "added ns/again >6 missed", "updated ns/kept 1>7 missed",
		}, r.take())
	})
}

func TestHandlersBeforeAndAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		i := informer.New[*corev1.Pod](s)
		var early, unused recorder
		h := add(t, i, early.handle)
		add(t, i, unused.handle).Remove()
		require.Empty(t, early.take())
		stop := start(t, i)
		require.Equal(t, []string{"added ns/a >1 initial"}, early.take())
		<-h.Synced()
		require.NoError(t, stop())
		require.Empty(t, unused.take())
		_, err := i.AddHandler(early.handle)
		require.ErrorIs(t, err, informer.ErrStopped)
		require.NoError(t, h.WaitSynced(t.Context()), "it was synced before the end")
		for range i.Events(t.Context()) {
			t.Error("an event after the end")
		}
		h.Remove()
		h.Remove()
	})
}

func TestBadHandlersNameTheCause(t *testing.T) {
	i := informer.New[*corev1.Pod](newServer())
	_, err := i.AddHandler(nil)
	require.ErrorContains(t, err, "nil")
	_, err = i.AddHandler(func(podEvent) {}, informer.WithRedelivery(-time.Second))
	require.ErrorContains(t, err, "WithRedelivery(-1s)")
}

func TestSyncedIsAfterTheLastReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := running(t, newServer("a", "b"))
		goOn := make(chan struct{})
		h := add(t, i, func(podEvent) { <-goOn })
		for range 2 {
			synctest.Wait()
			select {
			case <-h.Synced():
				t.Fatal("synced before it had returned")
			default:
			}
			require.False(t, i.Status().Handlers[0].Synced)
			goOn <- struct{}{}
		}
		require.NoError(t, h.WaitSynced(t.Context()))
		require.True(t, i.Status().Handlers[0].Synced)
	})
}

func TestEmptyCollectionIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := add(t, running(t, newServer()), func(podEvent) { t.Error("an event") })
		require.NoError(t, h.WaitSynced(t.Context()))
	})
}

func TestWaitSyncedOfAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := informer.New[*corev1.Pod](newServer("a"))
		h := add(t, i, func(podEvent) {}, informer.WithName("mine"))
		require.Equal(t, "mine", h.Name())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := h.WaitSynced(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "mine")
		h.Remove()
		require.ErrorIs(t, h.WaitSynced(t.Context()), informer.ErrStopped)
	})
}

// TestRemoveWaitsForTheLastReturn: two calls of Remove both wait for the handler that is at work.
func TestRemoveWaitsForTheLastReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a", "b")
		i := running(t, s)
		goOn := make(chan struct{})
		calls := 0
		h := add(t, i, func(podEvent) { calls++; <-goOn })
		synctest.Wait()
		removed := make(chan struct{})
		for range 2 {
			go func() { h.Remove(); removed <- struct{}{} }()
		}
		synctest.Wait()
		require.Empty(t, removed)
		require.Empty(t, i.Status().Handlers)
		goOn <- struct{}{}
		<-removed
		<-removed
		s.put("a")
		synctest.Wait()
		require.Equal(t, 1, calls)
	})
}

// TestHaltFromTheHandler: a handler that halts itself is told nothing more.
func TestHaltFromTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a", "b")
		i := informer.New[*corev1.Pod](s)
		var h *informer.Handler[*corev1.Pod]
		calls, left := 0, -1
		h = add(t, i, func(podEvent) {
			calls++
			h.Halt()
			h.Halt() // a second Halt does nothing
			left = len(i.Status().Handlers)
		})
		start(t, i)
		synctest.Wait()
		s.put("c")
		synctest.Wait()
		h.Remove()
		require.Equal(t, 1, calls)
		require.Zero(t, left)
	})
}

func TestRunWaitsForHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := informer.New[*corev1.Pod](newServer("a", "b"))
		calls := 0
		add(t, i, func(podEvent) { calls++; time.Sleep(time.Hour) }) // simulated time
		stop := start(t, i)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, stop())
		require.Equal(t, time.Hour, time.Since(began))
		require.Equal(t, 1, calls, "no event is begun after the end")
	})
}

func TestPanicEndsRun(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		handle func(podEvent)
		want   string
	}{
		"error":  {func(podEvent) { panic(broken) }, `handler "mine" panicked: broken (at added ns/a)`},
		"string": {func(podEvent) { panic("oh") }, `handler "mine" panicked: oh (at added ns/a)`},
		"object": {func(e podEvent) { panic(e.New) }, `handler "mine" panicked with a *v1.Pod (at added ns/a)`},
	} {
		t.Run(name, func(t *testing.T) {
			i := informer.New[*corev1.Pod](newServer("a"))
			h := add(t, i, c.handle, informer.WithName("mine"))
			err := i.Run(t.Context())
			require.EqualError(t, err, "informer: "+c.want)
			var p *informer.PanicError
			require.ErrorAs(t, err, &p)
			require.Contains(t, string(p.Stack), "handler_test.go")
			require.Equal(t, err, h.WaitSynced(t.Context()))
			if name == "error" {
				require.ErrorIs(t, err, broken)
			}
		})
	}
}

// TestGoexitEndsRun: a handler that ends its goroutine ends Run, as a failing assertion in it does.
func TestGoexitEndsRun(t *testing.T) {
	i := informer.New[*corev1.Pod](newServer("a"))
	inner := &testing.T{}
	add(t, i, func(podEvent) { inner.SkipNow() })
	require.ErrorContains(t, i.Run(t.Context()), `handler "handler-1" ended its goroutine`)
}

func TestPanicLeavesOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		i := running(t, s)
		var r recorder
		add(t, i, func(podEvent) { panic("oh") }, informer.WithName("bad"), informer.WithIsolation())
		add(t, i, r.handle)
		require.Len(t, r.take(), 1)
		s.put("a")
		require.Equal(t, []string{"updated ns/a 1>2"}, r.take())
		require.ErrorContains(t, i.Status().Handlers[0].Err, `"bad" panicked: oh`)
		require.NoError(t, i.Status().Handlers[1].Err)
	})
}

// TestStalledHandlerIsToldTheDifference: a handler stalls while 1,000 events pass a ring of 4. It
// shows its lag; then it is told the events that it had read, and one event per object.
func TestStalledHandlerIsToldTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a", "b", "c")
		i := running(t, s, informer.WithRing(4))
		goOn := make(chan struct{})
		var r, keeps recorder
		var last string
		h := add(t, i, func(e podEvent) { r.handle(e); last = show(e); <-goOn }, informer.WithName("slow"))
		quick := add(t, i, keeps.handle)
		for range 3 {
			goOn <- struct{}{}
		}
		require.NoError(t, h.WaitSynced(t.Context()))
		require.Len(t, r.take(), 3)
		s.put("a")
		synctest.Wait()
		require.Equal(t, "updated ns/a 1>4", last)
		time.Sleep(time.Minute) // simulated time
		for range 333 {
			for _, name := range []string{"a", "b", "d"} {
				s.put(name)
				synctest.Wait()
			}
		}
		s.remove("c")
		synctest.Wait()
		require.Equal(t, informer.Lag{Events: 1001, Age: time.Minute}, h.Lag())
		require.Equal(t, informer.Lag{}, quick.Lag())
		require.Len(t, keeps.take(), 3+1001)
		require.Equal(t, h.Lag(), i.Status().Handlers[0].Lag)
		close(goOn)
		require.Equal(t, "updated ns/a 1>4", r.take()[0])
		require.Equal(t, informer.Lag{}, h.Lag())
		status := i.Status()
		require.Equal(t, informer.HandlerStatus{Name: "slow", Synced: true, Delivered: 3 + 1 + 4, Differences: 1}, status.Handlers[0])
		require.Equal(t, 3, status.Objects)
	})
}

// TestHandlerBlockedInItsFirstList: the collection is quiet, so no change shows that the handler
// hangs. Its lag counts from the start of its initial list until it is synced.
func TestHandlerBlockedInItsFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a", "b", "c", "d", "e")
		i := informer.New[*corev1.Pod](s)
		goOn := make(chan struct{})
		h := add(t, i, func(podEvent) { <-goOn }, informer.WithName("slow"), informer.WithSynced(func() { <-goOn }))
		require.Zero(t, h.Lag(), "Run has not been called")
		time.Sleep(time.Hour) // simulated time
		start(t, i)
		synctest.Wait()
		goOn <- struct{}{}
		time.Sleep(10 * time.Minute)
		require.Equal(t, informer.Lag{Events: 4, Age: 10 * time.Minute}, h.Lag())
		require.Equal(t, informer.HandlerStatus{Name: "slow", Lag: h.Lag()}, i.Status().Handlers[0])
		shown := map[string]float64{}
		for sample := range i.Samples("pods") {
			shown[sample.Metric.Name] = sample.Value
		}
		require.Zero(t, shown["tributary_informer_handler_synced"])
		require.Equal(t, float64(4), shown["tributary_informer_handler_lag_events"])
		require.Equal(t, float64(600), shown["tributary_informer_handler_lag_seconds"])

		s.put("f")
		synctest.Wait()
		require.Equal(t, informer.Lag{Events: 5, Age: 10 * time.Minute}, h.Lag(), "a change waits, too")
		for range 4 {
			goOn <- struct{}{}
		}
		time.Sleep(time.Minute)
		require.Equal(t, informer.Lag{Events: 1, Age: 11 * time.Minute}, h.Lag(), "the function of WithSynced hangs")
		close(goOn)
		synctest.Wait()
		require.Zero(t, h.Lag())
		require.True(t, i.Status().Handlers[0].Synced)
	})
}

func TestRedelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		var r recorder
		add(t, running(t, s), r.handle, informer.WithRedelivery(time.Minute))
		require.Len(t, r.take(), 1)
		s.put("a")
		require.Len(t, r.take(), 1)
		requests := s.requests
		time.Sleep(time.Minute) // simulated time
		require.Equal(t, []string{"redelivered ns/a 2>2"}, r.take())
		s.remove("a")
		require.Equal(t, []string{"deleted ns/a 3>"}, r.take())
		time.Sleep(time.Minute)
		require.Empty(t, r.take())
		require.Equal(t, requests, s.requests, "the server is not asked")
	})
}

func TestEventsIsALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		i := informer.New[*corev1.Pod](s)
		var r recorder
		ended := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(ended)
			for e := range i.Events(ctx, informer.WithName("loop")) {
				r.handle(e)
			}
		}()
		synctest.Wait()
		start(t, i)
		synctest.Wait()
		s.put("a")
		require.Equal(t, []string{"added ns/a >1 initial", "updated ns/a 1>2"}, r.take())
		require.Equal(t, "loop", i.Status().Handlers[0].Name)
		cancel()
		<-ended
		require.Empty(t, i.Status().Handlers)
		for e := range i.Events(t.Context()) {
			require.Equal(t, "added ns/a >2 initial", show(e), "each loop begins anew")
			break
		}
		require.Empty(t, i.Status().Handlers)
	})
}

// TestWithSynced: synced is called once on the loop's goroutine, after the last object and before
// the first change, also for an empty list.
func TestWithSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a", "b")
		i := running(t, s)
		var lines []string // used by the loop's goroutine alone
		whole := func() { lines = append(lines, "whole") }
		for e := range i.Events(t.Context(), informer.WithSynced(whole), informer.WithRedelivery(time.Minute)) {
			lines = append(lines, show(e))
			switch len(lines) {
			case 2:
				s.put("b")
				synctest.Wait() // the change precedes the signal
			case 4:
				s.remove("a")
				s.remove("b")
			}
			if e.Type == informer.Deleted && e.Key == "ns/b" {
				break
			}
		}
		require.Len(t, lines, 6)
		require.ElementsMatch(t, []string{"added ns/a >1 initial", "added ns/b >2 initial"}, lines[:2])
		require.Equal(t, []string{"whole", "updated ns/b 2>3", "deleted ns/a 4>", "deleted ns/b 5>"}, lines[2:])

		told := make(chan bool, 1)
		h := add(t, i, func(podEvent) { t.Error("an event") }, informer.WithSynced(func() { told <- true }))
		require.NoError(t, h.WaitSynced(t.Context()))
		require.True(t, <-told, "of an empty collection")
	})
}

func TestPanicInWithSynced(t *testing.T) {
	i := informer.New[*corev1.Pod](newServer("a"))
	add(t, i, func(podEvent) {}, informer.WithName("mine"), informer.WithSynced(func() { panic("oh") }))
	require.EqualError(t, i.Run(t.Context()), `informer: handler "mine" panicked: oh (when told that it was synced)`)
}

func TestRunEndsLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := informer.New[*corev1.Pod](newServer("a"))
		stop := start(t, i)
		for range i.Events(t.Context()) {
			require.NoError(t, stop())
		}
	})
}

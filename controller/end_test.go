package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/informer"
)

// hang has calls of a key ignore their context until the test ends.
func (r *rig) hang(t *testing.T, key string) {
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	r.set(key, func() error { <-end; return nil })
}

// TestACallThatIgnoresItsContext does not hold up Run: neither after a lost lease nor at a stop.
func TestACallThatIgnoresItsContext(t *testing.T) {
	const named = `1 parts have not returned 3s after the end of their contexts: ["Reconcile of ns/a"]`
	t.Run("a lost lease", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "a", "b")
			r.hang(t, "ns/a")
			c := r.controller()
			lease, lose := context.WithCancelCause(t.Context())
			c.BaseContext = func() context.Context { return lease }
			time.AfterFunc(time.Minute, func() { lose(errors.New("the lease is lost")) })
			began := time.Now()
			require.EqualError(t, c.Run(t.Context()), "controller: BaseContext: the lease is lost\n"+named)
			require.Equal(t, 63*time.Second, time.Since(began))
			require.Equal(t, controller.Ended, c.Status().Phase)
		})
	})
	t.Run("a stop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "a", "b")
			r.hang(t, "ns/a")
			stop := run(t.Context(), r.controller())
			began := time.Now()
			require.EqualError(t, stop(), "controller: "+named)
			require.Equal(t, 23*time.Second, time.Since(began), "Grace, and three seconds")
		})
	})
}

// TestAFunctionThatDoesNotReturn: of a feed, of an attached one, or a handler of a copy, each by
// its name.
func TestAFunctionThatDoesNotReturn(t *testing.T) {
	for want, set := range map[string]func(t *testing.T, c *controller.Controller[string], pods *informer.Informer[pod], block func()){
		`"feed 2 (*v1.Pod)" "copy 1 (`: func(_ *testing.T, c *controller.Controller[string], pods *informer.Informer[pod], block func()) {
			c.Feeds = append(c.Feeds, controller.From(pods, func(pod) []string { block(); return nil }))
		},
		`"an attached feed (*v1.Pod)" "copy 1 (`: func(t *testing.T, c *controller.Controller[string], pods *informer.Informer[pod], block func()) {
			_, err := c.Attach(controller.From(pods, func(pod) []string { block(); return nil }))
			require.NoError(t, err)
		},
		`["copy 1 (*informer.Informer[*k8s.io/api/core/v1.Pod])"]`: func(t *testing.T, _ *controller.Controller[string], pods *informer.Informer[pod], block func()) {
			_, err := pods.AddHandler(func(informer.Event[pod]) { block() })
			require.NoError(t, err)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "a")
			c := r.controller()
			end := make(chan struct{})
			defer close(end)
			set(t, c, c.Copies[0].(*informer.Informer[pod]), func() { <-end })
			stop := run(t.Context(), c)
			began := time.Now()
			require.ErrorContains(t, stop(), want)
			require.LessOrEqual(t, time.Since(began), 26*time.Second)
		})
	}
}

// TestTimeout ends the context of a call, and says why.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a")
		c := r.controller()
		c.Timeout = 10 * time.Second
		c.Reconcile = func(ctx context.Context, _ string) error { <-ctx.Done(); return context.Cause(ctx) }
		stop := run(t.Context(), c)
		time.Sleep(10 * time.Second)
		require.EqualError(t, c.Status().Err, "ns/a: the call has taken its Timeout of 10s")
		require.NoError(t, stop())
	})
}

// TestTerminal: a failure that waits for the next change of its key.
func TestTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		bad := errors.New("the spec makes no sense")
		r.set("ns/a", func() error { return controller.Terminal(bad) })
		a := r.create("a")
		c := r.controller()
		stop := run(t.Context(), c)
		time.Sleep(time.Hour)
		require.Equal(t, []string{"ns/a"}, r.calls())
		require.ErrorIs(t, c.Status().Err, bad)
		require.EqualError(t, c.Status().Err, "ns/a: the spec makes no sense")
		r.label(a, "web")
		require.Equal(t, []string{"ns/a"}, r.calls())
		require.Equal(t, uint64(2), c.Status().Failed)
		require.NoError(t, controller.Terminal(nil))
		require.NoError(t, stop())
	})
}

// TestAStuckLoopIsNotReady: all workers hang, a key waits for them, or every call fails.
func TestAStuckLoopIsNotReady(t *testing.T) {
	for name, row := range map[string]struct {
		hangs, fails string
		wants        string
	}{
		"a call":       {hangs: "ns/a", wants: "controller: the call for ns/a has not returned for 9m59s"},
		"all calls":    {fails: "ns/a ns/b", wants: "controller: every call has failed for 9m59s, of 2 keys: ns/"},
		"one of two":   {fails: "ns/a"},
		"none of them": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "a", "b")
				if row.hangs != "" {
					r.hang(t, row.hangs)
				}
				for _, key := range []string{"ns/a", "ns/b"} {
					if row.fails == key || row.fails == "ns/a ns/b" {
						r.set(key, func() error { return errors.New("no quota") })
					}
				}
				c := r.controller()
				c.Workers, c.StuckAfter = 2, 9*time.Minute+58*time.Second
				stop := run(t.Context(), c)
				time.Sleep(9 * time.Minute)
				require.NoError(t, c.Ready(3*time.Minute))
				time.Sleep(58 * time.Second)
				if row.wants == "" {
					require.NoError(t, c.Ready(3*time.Minute))
					require.NoError(t, stop())
					return
				}
				require.ErrorContains(t, c.Ready(3*time.Minute), row.wants)
				require.ErrorContains(t, c.Status().Stuck, row.wants[len("controller: "):])
				var classes []string
				for sample := range c.Samples("x") {
					if sample.Metric.Name == "tributary_controller_not_right" {
						classes = append(classes, sample.Labels[1])
					}
				}
				require.Equal(t, []string{"stuck"}, classes)
				_ = stop()
			})
		})
	}
	synctest.Test(t, func(t *testing.T) { // one worker hangs, and a change waits for it
		r := newRig(t, "a")
		r.hang(t, "ns/a")
		c := r.controller()
		c.StuckAfter = time.Hour
		stop := run(t.Context(), c)
		time.Sleep(30 * time.Minute)
		r.create("b")
		time.Sleep(20 * time.Minute)
		require.NoError(t, c.Ready(3*time.Minute))
		require.Equal(t, 50*time.Minute+time.Second, c.Status().Longest)
		require.Equal(t, 20*time.Minute, c.Status().OldestUrgent)
		_ = stop()
	})
}

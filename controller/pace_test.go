package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/informer"
)

// TestAfterAMomentThatIsOver is no hot loop: the back-off is the pause.
func TestAfterAMomentThatIsOver(t *testing.T) {
	for _, pause := range []time.Duration{0, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, "a")
			r.set("ns/a", func() error { return controller.After(pause) })
			c := r.controller()
			stop := run(t.Context(), c)
			calls := len(r.calls())
			require.True(t, 6 <= calls && calls <= 9, "%d calls in a second", calls)
			time.Sleep(time.Hour)
			require.NotEmpty(t, r.calls(), "it goes on")
			require.Zero(t, c.Status().Failed)
			require.NoError(t, stop())
		})
	}
}

// TestEachCallTakesThePlaceOfTheTimer that an earlier call has asked for.
func TestEachCallTakesThePlaceOfTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		hourly := func() error { return controller.After(time.Hour) }
		r.set("ns/a", hourly)
		a := r.create("a")
		stop := run(t.Context(), r.controller()) // at 0, and called again at 60
		require.Equal(t, []string{"ns/a"}, r.calls())
		time.Sleep(20 * time.Minute)
		a = r.label(a, "one") // at 20, and called again at 80
		require.Equal(t, []string{"ns/a"}, r.calls())
		time.Sleep(59 * time.Minute)
		require.Empty(t, r.calls())
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"ns/a"}, r.calls())

		time.Sleep(20 * time.Minute)
		r.set("ns/a", nil)
		r.label(a, "two")
		require.Equal(t, []string{"ns/a"}, r.calls())
		time.Sleep(24 * time.Hour)
		require.Empty(t, r.calls(), "it is done")
		require.NoError(t, stop())
	})
}

// TestManyKeysThatFail are spread, and have a bound for all of them.
func TestManyKeysThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 10_000
		var calls atomic.Int64
		var mu sync.Mutex
		moments := map[time.Duration]int{}
		began := time.Now()
		c := &controller.Controller[string]{Workers: 8, Reconcile: func(context.Context, string) error {
			calls.Add(1)
			mu.Lock()
			defer mu.Unlock()
			moments[time.Since(began).Truncate(time.Millisecond)]++
			return errors.New("no quota")
		}}
		for i := range keys {
			c.AddPatient(fmt.Sprint("key-", i))
		}
		stop := run(t.Context(), c)
		require.LessOrEqual(t, calls.Load(), int64(keys+1000+100+10), "in the first second")
		time.Sleep(time.Minute)
		require.LessOrEqual(t, calls.Load(), int64(keys+1000+61*100*5/4))
		require.GreaterOrEqual(t, calls.Load(), int64(keys+1000+61*100*3/4))
		delete(moments, 0)
		mu.Lock()
		for at, n := range moments {
			require.Less(t, n, 600, "at %s", at)
		}
		mu.Unlock()
		require.NoError(t, stop())
	})
}

// TestTheStartIsASignal: no time passes between the first state of the copies and the first call.
func TestTheStartIsASignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		began := time.Now()
		go func() { ended <- r.controller().Run(ctx) }()
		require.Equal(t, []string{"ns/a"}, r.calls())
		require.Zero(t, time.Since(began))
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestAttach: a feed comes, has its keys called, and goes. The loop does not wait for its copy.
func TestAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine, other := newRig(t, "a"), newRig(t, "b")
		c := mine.controller()
		pods := informer.New(other.pods.ListerWatcher())
		detachEarly, err := c.Attach(controller.For(informer.New(newRig(t, "never").pods.ListerWatcher())))
		require.NoError(t, err)
		stop := run(t.Context(), c)
		require.Equal(t, []string{"ns/a"}, mine.calls(), "the copy of the other feed does not run")
		require.NoError(t, c.Ready(time.Hour))
		detachEarly()

		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- pods.Run(ctx) }()
		detach, err := c.Attach(controller.For(pods))
		require.NoError(t, err)
		require.Equal(t, []string{"ns/b"}, mine.calls())
		other.create("c")
		require.Equal(t, []string{"ns/c"}, mine.calls())
		c.AddAll()
		require.Equal(t, []string{"ns/a", "ns/b", "ns/c"}, mine.calls())
		detach()
		other.create("d")
		require.Empty(t, mine.calls())

		again, err := c.Attach(controller.For(pods))
		require.NoError(t, err)
		require.Equal(t, []string{"ns/b", "ns/c", "ns/d"}, mine.calls())
		leave()
		require.NoError(t, <-ended)
		synctest.Wait()
		mine.create("e")
		require.Equal(t, []string{"ns/e"}, mine.calls(), "its end is its own")
		again()
		require.NoError(t, stop())

		_, err = c.Attach(controller.Feed[string]{})
		require.ErrorContains(t, err, "the feed is empty")
		c = mine.controller()
		c.Checkpoint = "file"
		_, err = c.Attach(controller.For(pods))
		require.ErrorContains(t, err, "all feeds are in Feeds")
	})
}

// TestNoFeeds: the program adds all keys itself, and those with a change go first.
func TestNoFeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		c := &controller.Controller[string]{Reconcile: func(_ context.Context, key string) error {
			order = append(order, key)
			return nil
		}}
		c.AddPatient("a", "b")
		c.Add("c", "d")
		stop := run(t.Context(), c)
		synctest.Wait()
		require.Equal(t, []string{"c", "d", "a", "b"}, order)
		require.NoError(t, c.Ready(time.Minute))
		require.NoError(t, stop())
	})
}

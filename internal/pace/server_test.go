package pace_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/internal/pace"
)

// door sends requests through a Server, and notes them.
type door struct {
	*pace.Server
	mu    sync.Mutex // guards notes
	notes notes
}

type notes struct {
	let           []time.Duration // when each request went, since the start
	order         []int
	waited, ended int
	done          []func(pace.Outcome) // of those under way
}

// seen are the notes so far.
func (d *door) seen() notes {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.notes
	out.let, out.order, out.done = slices.Clone(out.let), slices.Clone(out.order), slices.Clone(out.done)
	return out
}

// ask makes request number n.
func (d *door) ask(ctx context.Context, n int, began time.Time) {
	done, err := d.Enter(ctx, func() func() { d.count(&d.notes.waited); return func() { d.count(&d.notes.ended) } })
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		to := &d.notes
		to.let, to.order, to.done = append(to.let, time.Since(began)), append(to.order, n), append(to.done, done)
	}
}

func (d *door) count(n *int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*n++
}

// askMany makes many requests in order, and returns when each has gone or waits.
func (d *door) askMany(ctx context.Context, many int, began time.Time) {
	for n := range many {
		go d.ask(ctx, n, began)
		synctest.Wait()
	}
}

// end ends all requests under way.
func (d *door) end(o pace.Outcome) {
	d.mu.Lock()
	under := d.notes.done
	d.notes.done = nil
	d.mu.Unlock()
	for _, done := range under {
		done(o)
	}
	synctest.Wait()
}

// TestAPresentServerGetsSoManyAtOnce: the others follow in order, when one is answered, or after a
// moment each.
func TestAPresentServerGetsSoManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, d := time.Now(), &door{Server: &pace.Server{}}
		d.askMany(t.Context(), pace.InFlight+10, began)
		require.Len(t, d.seen().let, pace.InFlight)
		require.Equal(t, 10, d.seen().waited)
		time.Sleep(3 * pace.Crowded)
		synctest.Wait()
		require.Equal(t, []time.Duration{pace.Crowded, 2 * pace.Crowded, 3 * pace.Crowded}, d.seen().let[pace.InFlight:], "while nothing is answered")
		require.IsIncreasing(t, d.seen().order)
		d.end(pace.Answered)
		require.Len(t, d.seen().let, pace.InFlight+10)
		require.Equal(t, 10, d.seen().ended)
		d.end(pace.Answered)
	})
}

// TestAnAbsentServerGetsOneRequestAtATime: however many collections ask, and the first answer lets
// all of them go.
func TestAnAbsentServerGetsOneRequestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, d := time.Now(), &door{Server: &pace.Server{}}
		for range pace.Attempts {
			d.askMany(t.Context(), 1, began)
			d.end(pace.Unreached)
		}
		require.Len(t, d.seen().let, pace.Attempts, "each at once: a program with few collections is not held up")
		d.askMany(t.Context(), 1000, began)
		for time.Since(began) < 10*time.Second || len(d.seen().done) == 0 {
			d.end(pace.Unreached)
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		seen := d.seen()
		require.IsIncreasing(t, seen.order[pace.Attempts:])
		probes := seen.let[pace.Attempts:]
		require.InDelta(t, 10*time.Second/pace.Probe, len(probes), 6)
		for i := range probes[1:] {
			require.GreaterOrEqual(t, probes[i+1]-probes[i], pace.Probe/2)
			require.LessOrEqual(t, probes[i+1]-probes[i], pace.Probe*3/2)
		}
		d.end(pace.Answered)
		require.Len(t, d.seen().let, len(seen.let)+pace.InFlight)
		for len(d.seen().done) > 0 {
			d.end(pace.Answered)
		}
		require.Len(t, d.seen().let, pace.Attempts+1000)
	})
}

// TestOneAnswerCountsMoreThanManyFailures: a server of which some requests fail is there.
func TestOneAnswerCountsMoreThanManyFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, d := time.Now(), &door{Server: &pace.Server{}}
		for i := range 10 * pace.Attempts {
			d.askMany(t.Context(), 1, began)
			if i%(pace.Attempts-1) == 0 {
				d.end(pace.Answered)
			} else {
				d.end(pace.Unreached)
				d.askMany(t.Context(), 1, began)
				d.end(pace.Neither)
			}
		}
		require.Zero(t, d.seen().waited)
	})
}

// TestATurnIsGivenUp: a request whose context ends takes no turn from others.
func TestATurnIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, d := time.Now(), &door{Server: &pace.Server{}}
		d.askMany(t.Context(), pace.InFlight, began)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		go func() {
			_, err := d.Enter(ctx, func() func() { return func() {} })
			require.ErrorIs(t, err, gone)
		}()
		synctest.Wait()
		d.askMany(t.Context(), 1, began)
		require.Len(t, d.seen().let, pace.InFlight)
		cancel(gone)
		synctest.Wait()
		d.end(pace.Answered)
		require.Len(t, d.seen().let, pace.InFlight+1)
		d.askMany(t.Context(), pace.InFlight-1, began)
		require.Len(t, d.seen().let, 2*pace.InFlight, "the turn that was given up takes no place")
		d.end(pace.Answered)
	})
}

// TestServersAreSharedAndForgotten: clients of one server share its pace as long as one of them is
// held.
func TestServersAreSharedAndForgotten(t *testing.T) {
	first := pace.ServerOf("a server")
	require.Same(t, first, pace.ServerOf("a server"))
	require.NotSame(t, first, pace.ServerOf("another"))
	runtime.KeepAlive(first)
	require.Eventually(t, func() bool { runtime.GC(); return pace.Known() == 0 }, 10*time.Second, time.Millisecond)
}

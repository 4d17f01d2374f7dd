package watchcache

import (
	"strconv"
	"sync/atomic"
	"time"
)

// stage is a part of a change's way through the cache.
type stage int

const (
	storing stage = iota // from the call of the write until the change is in the window
	taking               // from then until a watcher has taken it
	writing              // from then until the watcher is asked for more
	stages
)

func (s stage) String() string { return [stages]string{"store", "take", "write"}[s] }

// lagEvery: the lag of one in so many changes is measured. Counters that every delivery wrote to
// would cost as much as the delivery.
const lagEvery = 64

// lagBounds are the upper bounds of the buckets, but for the last, which has none.
var lagBounds = [...]time.Duration{
	100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second,
}

// lag is a histogram of times.
type lag struct {
	counts [len(lagBounds) + 1]atomic.Uint64
	sum    atomic.Int64 // in nanoseconds
}

func (l *lag) observe(d time.Duration) {
	i := 0
	for i < len(lagBounds) && d > lagBounds[i] {
		i++
	}
	l.counts[i].Add(1)
	l.sum.Add(int64(d))
}

// now is the time of changes, which is never zero.
func (c *Cache[T]) now() time.Duration { return max(1, time.Since(c.born)) }

// beginStoring is the time of a write that is measured; zero for all others.
func (c *Cache[T]) beginStoring() time.Duration {
	if c.window.Next()%lagEvery != 0 {
		return 0
	}
	return c.now()
}

// endStoring measures a write that has been entered.
func (c *Cache[T]) endStoring(began time.Duration) {
	if began != 0 {
		c.stats.lags[storing].observe(c.now() - began)
	}
}

// take measures the time that the last events have taken from the window to their watcher.
func (w *Watcher[T]) take() {
	for i := range w.batch.events {
		if of := w.batch.events[i].of; of != nil && of.number%lagEvery == 0 {
			w.took = w.cache.now()
			w.cache.stats.lags[taking].observe(w.took - of.at)
		}
	}
}

// askAgain measures the time since the last events were taken.
func (w *Watcher[T]) askAgain() {
	if w.took != 0 {
		w.cache.stats.lags[writing].observe(w.cache.now() - w.took)
		w.took = 0
	}
}

// counted is a lag at one moment: its sum, and how many measurements each bound and those before
// it have.
type counted struct {
	sum  time.Duration
	upTo [len(lagBounds) + 1]uint64
}

// lagsByStage has the lag of each stage now.
func (s *stats) lagsByStage() map[string]counted {
	all := map[string]counted{}
	for of := range stages {
		c := counted{sum: time.Duration(s.lags[of].sum.Load())}
		n := uint64(0)
		for i := range c.upTo {
			n += s.lags[of].counts[i].Load()
			c.upTo[i] = n
		}
		all[of.String()] = c
	}
	return all
}

func (c counted) count() uint64 { return c.upTo[len(lagBounds)] }

// buckets are the counts by the bound in seconds.
func (c counted) buckets() map[string]uint64 {
	all := map[string]uint64{"+Inf": c.count()}
	for i, bound := range lagBounds {
		all[strconv.FormatFloat(bound.Seconds(), 'g', -1, 64)] = c.upTo[i]
	}
	return all
}

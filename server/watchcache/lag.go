package watchcache

import (
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

// lag is a number of times, and their sum in nanoseconds.
type lag struct {
	count atomic.Uint64
	sum   atomic.Int64
}

func (l *lag) observe(d time.Duration) {
	l.count.Add(1)
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

// lagsByStage has the lag of each stage.
func (s *stats) lagsByStage() map[string]*lag {
	all := map[string]*lag{}
	for of := range stages {
		all[of.String()] = &s.lags[of]
	}
	return all
}

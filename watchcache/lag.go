package watchcache

import (
	"iter"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tributary-go/tributary/metrics"
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

// lagEvery is how many changes there are to one whose lag is measured: counters that every delivery
// wrote to would cost as much as the delivery.
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
	for i := range w.events {
		if of := w.events[i].of; of != nil && of.number%lagEvery == 0 {
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

var (
	lagTotal = ours.Counter("delivery_lag_seconds_sum",
		"Time of measured changes in a stage: store, from the write to the window; take, until a watcher has it; write, until the watcher is asked for more.",
		"group", "resource", "stage")
	laggedTotal = ours.Counter("delivery_lag_seconds_count",
		"Measurements in a stage: one write in 64, and its deliveries.", "group", "resource", "stage")
	lagBucket = ours.Counter("delivery_lag_seconds_bucket",
		"Measurements in a stage of this many seconds at most.", "group", "resource", "stage", "le")
)

// lagSamples are a histogram per stage.
func (s *stats) lagSamples(labels []string) iter.Seq[metrics.Sample] {
	return func(yield func(metrics.Sample) bool) {
		for of := range stages {
			l, labels := &s.lags[of], append(labels[:len(labels):len(labels)], of.String())
			count := uint64(0)
			for i := range l.counts {
				count += l.counts[i].Load()
				bound := "+Inf"
				if i < len(lagBounds) {
					bound = strconv.FormatFloat(lagBounds[i].Seconds(), 'g', -1, 64)
				}
				if !yield(lagBucket.Of(float64(count), append(labels[:len(labels):len(labels)], bound)...)) {
					return
				}
			}
			if !yield(laggedTotal.Of(float64(count), labels...)) || !yield(lagTotal.Of(time.Duration(l.sum.Load()).Seconds(), labels...)) {
				return
			}
		}
	}
}

// Package loop calls a function for the keys of a queue, and again for those that fail.
//
// The queue is client-go's, over two lanes. Keys with a change are urgent, all others are patient,
// such as those of an initial list. While both lanes have keys, every fifth call is a patient one.
package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"

	"github.com/tributary-go/tributary/metrics"
)

// Loop is a queue of keys and the calls for them. Its methods are safe for concurrent use.
type Loop[K comparable] struct {
	lanes *lanes[K]
	queue workqueue.TypedDelayingInterface[K]

	mu      sync.Mutex // guards the fields below
	counts  Counts
	failing map[K]bool
}

// Counts are the numbers of a loop at one moment.
type Counts struct {
	// Urgent and Patient are the keys that wait in each lane, and Oldest is the time that one of
	// them has waited for. Those that wait for their back-off, or for After, are in neither.
	Urgent, Patient int
	Oldest          time.Duration
	// Running are the calls under way.
	Running int
	// Done, Again and Failed count the calls that have returned nil, After, or another error.
	// Panicked counts those of Failed that did not return.
	Done, Again, Failed, Panicked uint64
	// Failing is the number of keys that failed at their last call. Err is the last such error,
	// with its key. It is nil if no key fails.
	Failing int
	Err     error
}

var table = metrics.NewTable([]string{"controller"},
	metrics.Gauge("tributary_controller_running", "Calls under way.", func(n Counts) int { return n.Running }),
	metrics.Gauge("tributary_controller_failing_keys", "Keys that failed at their last call.", func(n Counts) int { return n.Failing }),
	metrics.Gauge("tributary_controller_oldest_seconds", "How long a waiting key has waited.", func(n Counts) time.Duration { return n.Oldest }),
	metrics.By("lane", func(n Counts) map[string]int { return map[string]int{"urgent": n.Urgent, "patient": n.Patient} },
		metrics.Gauge("tributary_controller_keys", "Keys that wait.", metrics.Itself[int])),
	metrics.By("result", func(n Counts) map[string]uint64 {
		return map[string]uint64{"done": n.Done, "again": n.Again, "failed": n.Failed - n.Panicked, "panicked": n.Panicked}
	}, metrics.Counter("tributary_controller_calls_total", "Calls of Reconcile.", metrics.Itself[uint64])),
)

// Samples yields the numbers as metrics of a controller.
func (n Counts) Samples(name string) []metrics.Sample { return table(n, name) }

// After is the result of a call that asks for another one.
type After time.Duration

func (a After) Error() string { return "again after " + time.Duration(a).String() }

// New makes a loop. Its queue must be stopped. A name gives it client-go's metrics of workqueues.
func New[K comparable](name string) *Loop[K] {
	l := &Loop[K]{lanes: newLanes[K](), failing: map[K]bool{}}
	l.queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Name: name, Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: name, Queue: l.lanes}),
	})
	return l
}

// Add queues keys. After Stop it does nothing.
func (l *Loop[K]) Add(urgent bool, keys ...K) {
	for _, key := range keys {
		if urgent {
			l.lanes.urge(key)
		}
		l.queue.Add(key)
	}
}

// Stop ends the queue: keys that wait are dropped.
func (l *Loop[K]) Stop() { l.queue.ShutDown() }

// Caller makes the calls of a loop.
type Caller[K comparable] struct {
	Call    func(ctx context.Context, key K) error
	Workers int
	Backoff workqueue.TypedRateLimiter[K]
	Log     logr.Logger
}

// Run makes calls until Stop, with ctx, and returns when the last one has returned. A key is never
// in two calls at a time. A call that panics has failed.
func (l *Loop[K]) Run(ctx context.Context, c Caller[K]) {
	var running sync.WaitGroup
	defer running.Wait()
	workers := make(chan struct{}, max(1, c.Workers))
	for {
		workers <- struct{}{}
		key, ended := l.queue.Get()
		if ended || l.queue.ShuttingDown() { // such a queue hands out the rest of its keys
			return
		}
		l.count(func(n *Counts) { n.Running++ })
		running.Go(func() {
			defer func() { <-workers }()
			l.call(ctx, c, key)
		})
	}
}

func (l *Loop[K]) call(ctx context.Context, c Caller[K], key K) {
	var err error = &panicError{} // if the call ends its goroutine
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p}
		}
		if crash := (*panicError)(nil); errors.As(err, &crash) {
			c.Log.Error(err, "Reconcile did not return", "key", key, "stack", string(debug.Stack()))
		}
		l.settle(c, key, err)
	}()
	err = c.Call(ctx, key)
}

// settle takes the result of a call.
func (l *Loop[K]) settle(c Caller[K], key K, err error) {
	var again After
	var crash *panicError
	failed := err != nil && !errors.As(err, &again)
	switch {
	case failed:
		pause := c.Backoff.When(key)
		c.Log.Info("Will try again", "key", key, "attempt", c.Backoff.NumRequeues(key), "pause", pause.String(), "error", err.Error())
		l.queue.AddAfter(key, pause)
	case err != nil:
		c.Backoff.Forget(key)
		l.lanes.urge(key)
		l.queue.AddAfter(key, time.Duration(again))
	default:
		c.Backoff.Forget(key)
	}
	l.count(func(n *Counts) {
		n.Running--
		delete(l.failing, key)
		switch {
		case failed:
			l.failing[key] = true
			n.Failed, n.Err = n.Failed+1, fmt.Errorf("%v: %w", key, err)
			if errors.As(err, &crash) {
				n.Panicked++
			}
		case err != nil:
			n.Again++
		default:
			n.Done++
		}
	})
	l.lanes.settle(key, failed)
	l.queue.Done(key)
}

func (l *Loop[K]) count(change func(*Counts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.counts)
}

// Counts returns the present numbers.
func (l *Loop[K]) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.counts
	if n.Failing = len(l.failing); n.Failing == 0 {
		n.Err = nil
	}
	n.Patient, n.Urgent, n.Oldest = l.lanes.depth()
	return n
}

// panicError is the error of a call that did not return. It quotes the value of an error or a
// string alone.
type panicError struct{ value any }

func (p *panicError) Error() string {
	switch value := p.value.(type) {
	case nil:
		return "Reconcile has ended its goroutine"
	case error:
		return "Reconcile has panicked: " + value.Error()
	case string:
		return "Reconcile has panicked: " + value
	}
	return fmt.Sprintf("Reconcile has panicked with a %T", p.value)
}

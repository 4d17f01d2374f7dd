// Package loop calls a function for the keys of a queue, and again for those that fail.
//
// The queue is client-go's, over two lanes. Keys with a change are urgent, all others are patient,
// such as those of an initial list. While both lanes have keys, every fifth call is a patient one.
package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
)

// Loop is a queue of keys and the calls for them. Its methods are safe for concurrent use.
type Loop[K comparable] struct {
	lanes    *lanes[K]
	queue    workqueue.TypedInterface[K]
	stopping chan struct{} // closed by stop
	stop     func()

	mu     sync.Mutex // guards the fields below
	counts Counts
	calls  map[K]time.Time   // under way, and since when
	failed map[K]bool        // keys that failed at their last call
	timers map[K]*time.Timer // of keys that are called again without a change
	fails  time.Time         // the first failure after the last call that did not fail
}

// After is the result of a call that asks for another one.
type After time.Duration

func (a After) Error() string { return "again after " + time.Duration(a).String() }

// Terminal is the result of a call that is not tried again before the next change of its key.
type Terminal struct{ Err error }

func (t *Terminal) Error() string { return t.Err.Error() }

// Unwrap returns the error itself.
func (t *Terminal) Unwrap() error { return t.Err }

// New makes a loop, which must be stopped. A name gives it client-go's metrics of workqueues.
func New[K comparable](name string) *Loop[K] {
	l := &Loop[K]{
		lanes: newLanes[K](), stopping: make(chan struct{}),
		calls: map[K]time.Time{}, failed: map[K]bool{}, timers: map[K]*time.Timer{},
	}
	l.stop = sync.OnceFunc(func() { close(l.stopping) })
	l.queue = workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: name, Queue: l.lanes})
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
func (l *Loop[K]) Stop() {
	l.stop()
	l.queue.ShutDown()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.timers {
		l.restLocked(key)
	}
}

// later queues a key after a pause, in place of an earlier pause of that key.
func (l *Loop[K]) later(key K, pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.stopping:
	default:
		l.restLocked(key)
		l.timers[key] = time.AfterFunc(pause, func() { l.queue.Add(key) })
	}
}

// restLocked ends the pause of a key.
func (l *Loop[K]) restLocked(key K) {
	if timer, ok := l.timers[key]; ok {
		timer.Stop()
		delete(l.timers, key)
	}
}

// Caller makes the calls of a loop.
type Caller[K comparable] struct {
	Call    func(ctx context.Context, key K) error
	Workers int
	Timeout time.Duration   // of a call; 0: none
	Over    <-chan struct{} // closes when calls are not waited for any more
	Backoff workqueue.TypedRateLimiter[K]
	Log     logr.Logger
}

// Run makes calls until Stop, with ctx, and returns when the last one has returned, or with the
// keys of those that still run when Over closes. A key is never in two calls at a time. A call that
// panics has failed.
func (l *Loop[K]) Run(ctx context.Context, c Caller[K]) (left []K) {
	var running sync.WaitGroup
	workers := make(chan struct{}, max(1, c.Workers))
	for l.begins(workers) {
		key, ended := l.queue.Get()
		if ended || l.queue.ShuttingDown() { // such a queue hands out the rest of its keys
			break
		}
		l.begin(key)
		running.Go(func() {
			defer func() { <-workers }()
			l.call(ctx, c, key)
		})
	}
	if !Within(c.Over, &running) {
		left = l.running()
	}
	return left
}

// begins waits for a worker. It is false after Stop.
func (l *Loop[K]) begins(workers chan struct{}) bool {
	select {
	case workers <- struct{}{}:
		return true
	case <-l.stopping:
		return false
	}
}

// begin notes that a call begins, which takes the place of one that is due later.
func (l *Loop[K]) begin(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[key] = time.Now()
	l.restLocked(key)
}

// running are the keys of the calls under way.
func (l *Loop[K]) running() (keys []K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.calls {
		keys = append(keys, key)
	}
	return keys
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
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("the call has taken its Timeout of %s", c.Timeout))
		defer cancel()
	}
	err = c.Call(ctx, key)
}

// settle takes the result of a call.
func (l *Loop[K]) settle(c Caller[K], key K, err error) {
	var again After
	result := resultOf(err)
	switch {
	case result == failed || result == panicked:
		pause := spread(c.Backoff.When(key))
		c.Log.Info("Will try again", "key", key, "attempt", c.Backoff.NumRequeues(key), "pause", pause.String(), "error", err.Error())
		l.later(key, pause)
	case result == terminal:
		c.Backoff.Forget(key)
		c.Log.Info("Will try again at the next change", "key", key, "error", err.Error())
	case result == done:
		c.Backoff.Forget(key)
	case errors.As(err, &again) && again > 0:
		c.Backoff.Forget(key)
		l.lanes.urge(key)
		l.later(key, time.Duration(again))
	default: // a moment that is over, in a loop without a pause
		l.lanes.urge(key)
		l.later(key, spread(c.Backoff.When(key)))
	}
	l.mu.Lock()
	delete(l.calls, key)
	l.countLocked(key, result, err)
	l.mu.Unlock()
	l.lanes.settle(key, result == failed || result == panicked)
	l.queue.Done(key)
}

// spread makes a pause up to a quarter shorter or longer, so that keys that failed at once are not
// tried again at once.
func spread(pause time.Duration) time.Duration {
	return pause*3/4 + rand.N(pause/2+1)
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

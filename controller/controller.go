package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/handled"
	"github.com/tributary-go/tributary/internal/loop"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/signal"
)

// Controller is a loop. Set its fields before use, and call Run once. The other methods are safe
// for concurrent use, at any time.
type Controller[K comparable] struct {
	// Reconcile makes the world right for a key, by the content of the copies. Nil is done, [After]
	// is done for now, and any other error is tried again after Backoff, unless it is [Terminal].
	Reconcile func(ctx context.Context, key K) error
	// Feeds bring the keys; without feeds, Add does. [Controller.Attach] adds others later.
	Feeds []Feed[K]
	// Copies run beside the loop, and end last. Leave out those that the program runs itself.
	Copies []Runner

	// Name is for handlers, the log and workqueue metrics. Default: "controller", no metrics.
	Name string
	// Workers is how many keys are reconciled at a time. Default: 1.
	Workers int
	// Timeout is how long a call may take until its context ends. Default: no bound.
	Timeout time.Duration
	// Backoff is how long a key waits after an error, up to a quarter more or less. Default: 5 ms,
	// doubled up to 5 minutes, and at most 100 keys a second after the first 1,000. A limiter of
	// your own bounds all keys by a workqueue.TypedBucketRateLimiter.
	Backoff workqueue.TypedRateLimiter[K]
	// MaxStaleness is how old the proof of a copy may be at the start. Default: 3 minutes.
	MaxStaleness time.Duration
	// StuckAfter is how long a call may run, a key with a change may wait, and all calls may fail,
	// until Ready says so. Default: 10 minutes.
	StuckAfter time.Duration
	// Grace is how long calls may go on after the end of Run's context. Default: 20 seconds.
	Grace time.Duration
	// BaseContext returns the context of all calls. Its end is the end of Run: a leader gives the
	// context of its lease. Default: Run's, without its end.
	BaseContext func() context.Context
	// Checkpoint is the file of the keys that are done, in a folder that exists. Keys must be
	// strings, and Name be set. One controller uses the file at a time. Default: none.
	Checkpoint string
	// Version is the version of Reconcile: after a checkpoint of another one, every key is called.
	// Default: a digest of the program's file, so that each new build is another version.
	Version string

	once       sync.Once
	loop       *loop.Loop[K]
	life       loop.Life
	changed    signal.Signal    // a feed has told its objects
	file       *handled.File[K] // nil without a checkpoint
	log        logr.Logger
	told       []atomic.Pointer[func() bool] // CaughtUp of each feed that has told its objects
	everything atomic.Bool                   // AddAll was called before the start
	attached   attachments[K]
}

// Runner is a part that a controller runs, such as an informer or a set of informers.
type Runner interface{ Run(context.Context) error }

// Run is Run of a [Controller] with these fields.
func Run[K comparable](ctx context.Context, reconcile func(ctx context.Context, key K) error, feeds ...Feed[K]) error {
	return (&Controller[K]{Reconcile: reconcile, Feeds: feeds}).Run(ctx)
}

// After is a result of Reconcile, and no failure: the key is called again after d, or at its next
// change if that is earlier. Each call of a key takes the place of what an earlier one has asked
// for. If d is not positive, as after a moment that is over, Backoff is the pause. An error that
// wraps After is the same, and may say why.
func After(d time.Duration) error { return loop.After(d) }

// Terminal is a result of Reconcile: a failure that is not tried again before the key's next
// change. Terminal of nil is nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &loop.Terminal{Err: err}
}

func (c *Controller[K]) queue() *loop.Loop[K] {
	c.once.Do(func() { c.loop = loop.New[K](c.Name) })
	return c.loop
}

// Add queues keys, such as those of a change outside the cluster.
func (c *Controller[K]) Add(keys ...K) { c.queue().Add(true, keys...) }

// AddPatient queues keys that all keys with a change go before, such as those of a full pass.
func (c *Controller[K]) AddPatient(keys ...K) { c.queue().Add(false, keys...) }

// AddAll queues the keys of all objects: a full pass. Before the start, it has the loop begin with
// one, whatever the checkpoint says. It does not know the keys of [Moments].
func (c *Controller[K]) AddAll() {
	c.everything.Store(true)
	if phase, _ := c.life.Now(); phase < Working {
		return
	}
	for _, f := range slices.Concat(c.Feeds, c.attached.present()) {
		f.all(func(keys []K) { c.AddPatient(keys...) })
	}
}

// leave is how long calls and handlers are waited for after their contexts have ended.
const leave = 3 * time.Second

// Run reconciles until ctx ends, which is no error. It blocks, and everything that it started has
// ended when it returns; but a call, or a function of a feed, that goes on for three seconds after
// its context has ended, is left alone, and Run's error names it. Run fails at once on bad fields
// or a second call, and later if a copy ends.
func (c *Controller[K]) Run(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	base := context.WithoutCancel(ctx)
	if c.BaseContext != nil {
		base = c.BaseContext()
	}
	calling, cut := context.WithCancel(base)
	defer cut()
	over, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(calling, func() { time.AfterFunc(leave, end) })()
	feeding, stop := context.WithCancelCause(ctx)
	defer context.AfterFunc(feeding, func() {
		c.life.Enter(Stopping)
		c.queue().Stop()
		time.AfterFunc(cmp.Or(c.Grace, 20*time.Second), cut)
	})()
	copies, feeds, errs := loop.NewParts(stop)
	defer context.AfterFunc(base, func() { feeds.Fail(fmt.Errorf("BaseContext: %w", context.Cause(base))) })()
	keeping, release := context.WithCancel(context.WithoutCancel(ctx))
	for i, r := range c.Copies {
		copies.Go(keeping, fmt.Sprintf("copy %d (%T)", i+1, r), r.Run)
	}
	c.told = make([]atomic.Pointer[func() bool], len(c.Feeds))
	for i, f := range c.Feeds {
		feeds.Go(feeding, f.describe(i), func(ctx context.Context) error {
			return f.run(ctx, c, i, func(caughtUp func() bool) {
				c.told[i].Store(&caughtUp)
				c.changed.Broadcast()
			})
		})
	}
	c.attached.start(feeding, c, feeds)
	left := c.work(calling, feeding, over.Done())
	left = append(left, feeds.Wait(over.Done())...)
	release()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), leave)
	defer cancel()
	left = append(left, copies.Wait(ending.Done())...)
	c.life.Enter(Ended)
	err := c.file.Close()
	if ctx.Err() == nil || !errors.Is(context.Cause(feeding), context.Cause(ctx)) {
		err = errors.Join(errs(), err)
	}
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("%d parts have not returned %s after the end of their contexts: %q", len(left), leave, left))
	}
	if err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	return nil
}

// work makes the calls, once the copies are right, until feeding ends. It returns what still runs
// when over closes.
func (c *Controller[K]) work(calling, feeding context.Context, over <-chan struct{}) (left []string) {
	if !c.life.Await(feeding, c.log, &c.changed, c.mayStart) {
		return nil
	}
	for key := range c.file.Due(c.everything.Load(), c.versions()) {
		c.AddPatient(key)
	}
	call := func(ctx context.Context, key K) error {
		return c.file.Call(ctx, key, c.Reconcile, c.caughtUp, feeding.Done())
	}
	for _, key := range c.queue().Run(calling, loop.Caller[K]{
		Call: call, Workers: c.Workers, Timeout: c.Timeout, Over: over, Backoff: c.Backoff, Log: c.log,
	}) {
		left = append(left, fmt.Sprint("Reconcile of ", key))
	}
	return left
}

// begin checks the fields and opens the checkpoint.
func (c *Controller[K]) begin(ctx context.Context) (err error) {
	if !c.life.Enter(Waiting) {
		return errors.New("controller: Run was called twice: make a new controller for each run")
	}
	defer func() {
		if err != nil {
			c.life.Enter(Ended)
			c.queue().Stop()
		}
	}()
	if err := c.check(); err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	if c.Backoff == nil {
		c.Backoff = workqueue.NewTypedMaxOfRateLimiter(
			workqueue.NewTypedItemExponentialFailureRateLimiter[K](5*time.Millisecond, 5*time.Minute),
			&workqueue.TypedBucketRateLimiter[K]{Limiter: rate.NewLimiter(100, 1000)})
	}
	c.log = klog.FromContext(ctx).WithName(c.name())
	if c.Checkpoint == "" {
		return nil
	}
	owner := handled.Owner{Name: c.Name, Version: c.Version}
	if owner.Version == "" {
		if owner.Version, err = buildVersion(); err != nil {
			return fmt.Errorf("controller: Checkpoint: the program's file cannot be read: set Version: %w", err)
		}
	}
	for i, f := range c.Feeds {
		owner.Feeds = append(owner.Feeds, f.describe(i))
	}
	c.file, err = handled.Open[K](c.Checkpoint, owner, func(err error) {
		c.log.Info("The checkpoint is of no use now, and every key is reconciled", "error", err.Error())
	})
	if err != nil {
		return fmt.Errorf("controller: Checkpoint: %w", err)
	}
	return nil
}

// check returns all that is wrong with the fields.
func (c *Controller[K]) check() error {
	var all []error
	wrong := func(is bool, format string, a ...any) {
		if is {
			all = append(all, fmt.Errorf(format, a...))
		}
	}
	wrong(c.Reconcile == nil, "Reconcile is nil: give the function that is called for each key")
	wrong(c.Workers < 0, "Workers is %d: give 1 or more, or 0 for 1", c.Workers)
	for name, d := range map[string]time.Duration{
		"Timeout": c.Timeout, "MaxStaleness": c.MaxStaleness, "StuckAfter": c.StuckAfter, "Grace": c.Grace,
	} {
		wrong(d < 0, "%s is %s: give a positive time, or 0 for the default", name, d)
	}
	for i, f := range c.Feeds {
		wrong(f.run == nil, "Feeds[%d] is empty: make it with For, From, FromMeta or Moments", i)
	}
	for i, r := range c.Copies {
		wrong(null.Is(r), "Copies[%d] is nil (%T)", i, r)
	}
	wrong(c.Checkpoint != "" && c.Name == "", "Checkpoint: set Name, which says whose file it is")
	return errors.Join(all...)
}

// mayStart is nil if all copies are right, and each feed has told its objects.
func (c *Controller[K]) mayStart() error {
	if err := c.copiesReady(cmp.Or(c.MaxStaleness, 3*time.Minute)); err != nil {
		return err
	}
	for i, f := range c.Feeds {
		if c.told[i].Load() == nil {
			return fmt.Errorf("%s: its objects are being told", f.describe(i))
		}
	}
	return nil
}

// caughtUp is true when each feed was told all changes of its copy.
func (c *Controller[K]) caughtUp() bool {
	for i := range c.told {
		if !(*c.told[i].Load())() {
			return false
		}
	}
	return true
}

func (c *Controller[K]) name() string { return cmp.Or(c.Name, "controller") }

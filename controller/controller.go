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
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/handled"
	"github.com/tributary-go/tributary/internal/loop"
)

// Controller is a loop. Set its fields before use, and call Run once. The other methods are safe
// for concurrent use, at any time.
type Controller[K comparable] struct {
	// Reconcile makes the world right for a key, by the content of the copies. Nil is done, [After]
	// is done for now, and any other error is tried again after Backoff.
	Reconcile func(ctx context.Context, key K) error
	// Feeds bring the keys.
	Feeds []Feed[K]
	// Copies run beside the loop, and end last. Leave out those that the program runs itself.
	Copies []Runner

	// Name is for handlers, the log and workqueue metrics. Default: "controller", no metrics.
	Name string
	// Workers is how many keys are reconciled at a time. Default: 1.
	Workers int
	// Backoff is how long a key waits after an error. Default: 5 ms, doubled up to 5 minutes.
	Backoff workqueue.TypedRateLimiter[K]
	// MaxStaleness is how old the proof of a copy may be at the start. Default: 3 minutes.
	MaxStaleness time.Duration
	// Grace is how long calls may go on after the end of Run's context. Default: 20 seconds.
	Grace time.Duration
	// BaseContext returns the context of all calls. Its end is the end of Run: a leader gives the
	// context of its lease. Default: Run's, without its end.
	BaseContext func() context.Context
	// Checkpoint is the file of the keys that are done, in a folder that exists. Keys must be
	// strings. One process uses the file at a time. Default: none.
	Checkpoint string
	// Version is the version of Reconcile. The checkpoint of another one is not used.
	Version string

	once sync.Once
	loop *loop.Loop[K]
	life loop.Life
	file *handled.File[K] // nil without a checkpoint
	log  logr.Logger
	told []atomic.Pointer[func() bool] // CaughtUp of each feed that has told its objects
}

// Runner is a part that a controller runs, such as an informer or a set of informers.
type Runner interface{ Run(context.Context) error }

// Run is Run of a [Controller] with these fields.
func Run[K comparable](ctx context.Context, reconcile func(ctx context.Context, key K) error, feeds ...Feed[K]) error {
	return (&Controller[K]{Reconcile: reconcile, Feeds: feeds}).Run(ctx)
}

// After is a result of Reconcile, and no failure: the key is called again after d, or at its next
// change if that is earlier. An error that wraps it is the same, and may say why.
func After(d time.Duration) error { return loop.After(d) }

func (c *Controller[K]) queue() *loop.Loop[K] {
	c.once.Do(func() { c.loop = loop.New[K](c.Name) })
	return c.loop
}

// Add queues keys, such as those of a change outside the cluster.
func (c *Controller[K]) Add(keys ...K) { c.queue().Add(true, keys...) }

// AddAll queues the keys of all objects: a full pass. It does not know those of [Moments].
func (c *Controller[K]) AddAll() {
	for _, f := range c.Feeds {
		f.all(func(keys []K) { c.queue().Add(false, keys...) })
	}
}

// Run reconciles until ctx ends, which is no error. It blocks, and everything that it started has
// ended when it returns. It fails at once on bad fields or a second call, and later if a copy ends.
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
			return f.run(ctx, c, func(caughtUp func() bool) { c.told[i].Store(&caughtUp) })
		})
	}
	if c.life.Await(feeding, c.log, c.mayStart) {
		for key := range c.file.Due() {
			c.queue().Add(false, key)
		}
		call := func(ctx context.Context, key K) error {
			return c.file.Call(ctx, key, c.Reconcile, c.caughtUp, feeding.Done())
		}
		c.queue().Run(calling, loop.Caller[K]{Call: call, Workers: c.Workers, Backoff: c.Backoff, Log: c.log})
	}
	feeds.Wait()
	release()
	copies.Wait()
	c.life.Enter(Ended)
	err := c.file.Close()
	if ctx.Err() == nil || !errors.Is(context.Cause(feeding), context.Cause(ctx)) {
		err = errors.Join(errs(), err)
	}
	if err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	return nil
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
	if c.Reconcile == nil || len(c.Feeds) == 0 || slices.ContainsFunc(c.Feeds, func(f Feed[K]) bool { return f.run == nil }) {
		return errors.New("controller: Reconcile is nil, or there are no Feeds: give both")
	}
	if c.Backoff == nil {
		c.Backoff = workqueue.NewTypedItemExponentialFailureRateLimiter[K](5*time.Millisecond, 5*time.Minute)
	}
	c.log = klog.FromContext(ctx).WithName(c.name())
	if c.Checkpoint == "" {
		return nil
	}
	version := c.Version
	for i, f := range c.Feeds {
		version += "; " + f.describe(i)
	}
	c.file, err = handled.Open[K](c.Checkpoint, version, func(err error) {
		c.log.Info("The checkpoint is of no use, and every key is reconciled", "error", err.Error())
	})
	if err != nil {
		return fmt.Errorf("controller: Checkpoint: %w", err)
	}
	return nil
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

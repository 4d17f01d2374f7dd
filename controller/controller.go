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

	// Name is for handlers, the log and client-go's metrics of workqueues. Default: "controller",
	// without such metrics.
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

	ran  atomic.Bool
	once sync.Once
	loop *loop.Loop[K]
	file *handled.File[K] // nil without a checkpoint
	log  logr.Logger
	told []atomic.Pointer[func() bool] // of each feed that has told its objects: CaughtUp

	mu    sync.Mutex // guards the fields below
	phase Phase
	waits error
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
	feeding, cancel := context.WithCancelCause(ctx)
	errs := make(chan error, len(c.Copies)+len(c.Feeds)+1)
	fail := func(part string, err error) {
		errs <- fmt.Errorf("controller: %s: %w", part, err)
		cancel(err)
	}
	defer context.AfterFunc(base, func() { fail("BaseContext", context.Cause(base)) })()
	defer context.AfterFunc(feeding, func() {
		c.enter(Stopping, nil)
		c.queue().Stop()
		time.AfterFunc(cmp.Or(c.Grace, 20*time.Second), cut)
	})()
	keeping, release := context.WithCancel(context.WithoutCancel(ctx))
	start := func(group *sync.WaitGroup, ctx context.Context, name string, run func(context.Context) error) {
		group.Go(func() {
			err := run(ctx)
			if err == nil && ctx.Err() == nil {
				err = errors.New("Run has ended")
			}
			if err != nil {
				fail(name, err)
			}
		})
	}
	var copies, feeds sync.WaitGroup
	for i, r := range c.Copies {
		start(&copies, keeping, fmt.Sprintf("copy %d (%T)", i+1, r), r.Run)
	}
	c.told = make([]atomic.Pointer[func() bool], len(c.Feeds))
	for i, f := range c.Feeds {
		start(&feeds, feeding, f.describe(i), func(ctx context.Context) error {
			return f.run(ctx, c, func(caughtUp func() bool) { c.told[i].Store(&caughtUp) })
		})
	}
	if c.await(feeding) {
		c.queue().Run(calling, loop.Caller[K]{Call: c.call, Workers: c.Workers, Backoff: c.Backoff, Log: c.log})
	}
	feeds.Wait()
	release()
	copies.Wait()
	c.enter(Ended, nil)
	err := c.file.Close()
	for ctx.Err() == nil || !errors.Is(context.Cause(feeding), context.Cause(ctx)) {
		select {
		case next := <-errs:
			err = errors.Join(err, next)
		default:
			return err
		}
	}
	return err
}

// begin checks the fields and opens the checkpoint.
func (c *Controller[K]) begin(ctx context.Context) (err error) {
	if c.ran.Swap(true) {
		return errors.New("controller: Run was called twice: make a new controller for each run")
	}
	defer func() {
		if err != nil {
			c.enter(Ended, nil)
			c.queue().Stop()
		}
	}()
	if c.Reconcile == nil || len(c.Feeds) == 0 || slices.ContainsFunc(c.Feeds, func(f Feed[K]) bool { return f.run == nil }) {
		return errors.New("controller: Reconcile is nil, or there are no Feeds: give both")
	}
	if c.Backoff == nil {
		c.Backoff = workqueue.NewTypedItemExponentialFailureRateLimiter[K](5*time.Millisecond, 5*time.Minute)
	}
	c.enter(Waiting, errors.New("Run has just begun"))
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

// await blocks until the loop may start, and queues the keys that the checkpoint does not have. It
// is false if ctx ends first.
func (c *Controller[K]) await(ctx context.Context) bool {
	said := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := c.copiesReady(cmp.Or(c.MaxStaleness, 3*time.Minute))
		for i := range c.told {
			if err == nil && c.told[i].Load() == nil {
				err = fmt.Errorf("%s: its objects are being told", c.Feeds[i].describe(i))
			}
		}
		switch {
		case err == nil && c.enter(Working, nil):
			for key := range c.file.Due() {
				c.queue().Add(false, key)
			}
			return true
		case err != nil && time.Since(said) > 10*time.Second:
			said = time.Now()
			c.log.Info("Waiting for copies to be right", "error", err.Error())
		}
		c.enter(Waiting, err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// call calls Reconcile. The key is done in the checkpoint if no change of its state was told between
// the begin of the call and a moment at which every change that the call may have read was told.
func (c *Controller[K]) call(ctx context.Context, key K) error {
	if c.file == nil {
		return c.Reconcile(ctx, key)
	}
	if err := c.file.Begin(key); err != nil {
		return err
	}
	if err := c.Reconcile(ctx, key); err != nil {
		return err
	}
	for pause := 10 * time.Microsecond; !c.caughtUp(); pause = min(2*pause, 10*time.Millisecond) {
		if !c.at(Working) {
			return nil // the restart calls the key
		}
		time.Sleep(pause)
	}
	c.file.Done(key)
	return nil
}

// caughtUp is true when the feeds were told all changes of their copies.
func (c *Controller[K]) caughtUp() bool {
	for i := range c.told {
		if !(*c.told[i].Load())() {
			return false
		}
	}
	return true
}

func (c *Controller[K]) name() string { return cmp.Or(c.Name, "controller") }

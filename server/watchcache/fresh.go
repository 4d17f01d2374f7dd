package watchcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/store"
)

// WaitFor returns once the cache has reached a resource version, but waits no longer than
// [WithFreshWait]. Errors are API status errors: 429 while the cache is empty, 504 if the version
// is not reached in time. The end of ctx is ctx's error.
func (c *Cache[T]) WaitFor(ctx context.Context, resourceVersion string) error {
	version, err := parseVersion("wait", resourceVersion)
	if err == nil {
		_, err = c.notOlderThan(ctx, version)
	}
	return err
}

// WaitFresh returns once the cache shows every write that the upstream had made when WaitFresh was
// called. Without [WithUpstream] it returns at once. It waits until the deadline of ctx, or as
// [Cache.WaitFor] if there is none. Errors are those of WaitFor, and 503 or 504 if the upstream
// cannot be asked.
func (c *Cache[T]) WaitFresh(ctx context.Context) error {
	_, err := c.fresh(ctx)
	return err
}

// fresh is the present state, proven to hold every write that the upstream has made before. A
// reader with a deadline waits until then, as before the API server; health checks hear of the
// failure before.
func (c *Cache[T]) fresh(ctx context.Context) (now view[T], err error) {
	now, err = c.latest()
	if err != nil || c.proof == nil {
		return now, err
	}
	asked := time.Now()
	version, err := c.proof.newest(ctx)
	if err == nil {
		now, err = c.notOlderThan(ctx, version)
		err = notAgain(err)
		if ctx.Err() == nil {
			c.proof.compared(asked, version, err)
		}
		if ends, patient := ctx.Deadline(); patient && apierrors.IsTimeout(err) {
			late := err // it says what has been waited for
			if now, err = c.await(ctx, time.Until(ends), version, c.latest); errors.Is(err, context.DeadlineExceeded) {
				err = late
			}
		}
	}
	c.stats.proved(err)
	return now, err
}

// notAgain has the client of a read that could not be proven show the error. With a time to come
// again, kubectl would try ten times in silence.
func notAgain(err error) error {
	var status *apierrors.StatusError
	if errors.As(err, &status) && status.ErrStatus.Details != nil {
		status.ErrStatus.Details.RetryAfterSeconds = 0
	}
	return err
}

// notOlderThan is the present state once it is known to be that of version or of a later one. It
// waits a while for that, then fails with 504.
func (c *Cache[T]) notOlderThan(ctx context.Context, version uint64) (view[T], error) {
	return c.await(ctx, c.config.freshWait, version, c.latest)
}

// await returns what look sees once it has reached version. It waits so long for that, then fails
// with 504.
func (c *Cache[T]) await(ctx context.Context, wait time.Duration, version uint64, look func() (view[T], error)) (view[T], error) {
	now, err := look()
	if err != nil || now.version >= version {
		return now, err
	}
	defer c.stats.waitedFor(time.Now())
	if c.proof != nil {
		defer c.proof.compare()()
		defer c.proof.seeking.join(c.proof.askForProgress)()
	}
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	now, err = c.reach(within, version, look)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = tooLarge(version, now.version)
	}
	return now, err
}

// reach waits until look sees version or a later one, or ctx has ended.
func (c *Cache[T]) reach(ctx context.Context, version uint64, look func() (view[T], error)) (view[T], error) {
	for {
		changed := c.changed.Wait()
		var counted <-chan struct{}
		if c.revision != nil {
			counted = c.revision.changed.Wait()
		}
		now, err := look()
		if err != nil || now.version >= version {
			return now, err
		}
		select {
		case <-changed:
		case <-counted:
		case <-ctx.Done():
			return now, ctx.Err()
		}
	}
}

const (
	// askPatience bounds one question to the upstream. One may take twice as long as the one
	// before, up to mostPatience: an upstream that is under load answers in the end.
	askPatience  = 3 * time.Second
	mostPatience = 12 * time.Second
	// askEvery is how often progress is asked for while a reader waits, as by the API server.
	askEvery = 100 * time.Millisecond
	// askAgain is the pause after a question for progress that has failed.
	askAgain = time.Second
)

// proof asks the upstream for all readers that wait: they share one question for its newest
// version, one for its progress and one for its content. A goroutine lives while a question is in
// flight.
type proof[T store.Object] struct {
	cache     *Cache[T]
	upstream  Upstream
	seeking   errand // asks for progress
	comparing errand // asks for the content

	mu        sync.Mutex // guards the next fields
	asking    *question
	next      *question     // of later readers, for whom the answer to asking may be too old
	told      uint64        // the newest version that the upstream has told
	took      time.Duration // the newest question, with or without an answer
	compareAt time.Time     // when the content may be asked for again
	askedAt   time.Time     // when the newest question was asked that has ended
	unheard   failure       // of the questions
	behind    shortfall     // of the copy
}

// errand is a goroutine that runs while readers need it.
type errand struct {
	work   *work      // of the cache
	mu     sync.Mutex // guards the next fields
	needed int
	stop   context.CancelFunc
}

// join starts run unless it runs. The context of run ends when the last reader has left, or with
// the cache.
func (e *errand) join(run func(context.Context)) (leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.needed++; e.needed == 1 {
		ctx, cancel := context.WithCancel(e.work.ctx)
		e.stop = cancel
		e.work.begin(func() { run(ctx) })
	}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.needed--; e.needed == 0 {
			e.stop()
		}
	}
}

// question is one request for the newest version. It goes on when its readers have left: its
// outcome is that of the proof.
type question struct {
	done    chan struct{}
	version uint64 // set before done closes, as is err
	err     error
	late    bool      // there was no answer in time
	sent    time.Time // guarded by the proof's mu
}

// newest is the upstream's newest version at some moment after the call. A reader with a deadline
// asks again after a question that had no answer.
func (p *proof[T]) newest(ctx context.Context) (uint64, error) {
	_, patient := ctx.Deadline()
	came := time.Now()
	for late := error(nil); ; {
		q := p.join(came)
		select {
		case <-q.done:
			if late = q.err; !patient || !q.late {
				return q.version, q.err
			}
		case <-ctx.Done():
			return 0, cmp.Or(late, ctx.Err())
		}
	}
}

// join takes part in the first question that was sent after a reader came.
func (p *proof[T]) join(came time.Time) *question {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.joinLocked(came)
}

func (p *proof[T]) joinLocked(came time.Time) *question {
	if p.asking != nil && p.asking.sent.After(came) {
		return p.asking
	}
	if p.next == nil {
		p.next = &question{done: make(chan struct{})}
	}
	q := p.next
	if p.asking == nil {
		p.askNext()
	}
	return q
}

// askNext sends the question that is next. The lock is held.
func (p *proof[T]) askNext() {
	p.asking, p.next = p.next, nil
	if p.asking != nil {
		p.asking.sent = time.Now()
	}
	if q := p.asking; q != nil && !p.cache.work.begin(func() { p.ask(q) }) {
		q.err, p.asking = p.cache.closed(), nil
		close(q.done)
	}
}

func (p *proof[T]) ask(q *question) {
	asked := time.Now()
	p.mu.Lock()
	patience := min(max(askPatience, 2*p.took), mostPatience)
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(p.cache.work.ctx, patience)
	defer cancel()
	answer, err := p.upstream.Newest(ctx)
	if err == nil {
		q.version, err = parseVersion("newest", answer)
	}
	if err != nil {
		q.err = cmp.Or(p.cache.closed(), unproven(ctx, p.cache.kind.GroupResource(), err))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took, q.late = time.Since(asked), err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
	if q.err == nil {
		p.told = q.version // an upstream that was restored may have gone back
	}
	p.askedAt = asked
	p.unheard.note(asked, cmp.Or(err, q.err))
	close(q.done)
	if q.late && p.next != nil { // its readers have waited, too
		p.next.err, p.next.late = q.err, true
		close(p.next.done)
		p.next = nil
	}
	p.askNext()
}

func (p *proof[T]) askForProgress(ctx context.Context) {
	for ctx.Err() == nil {
		lists := p.cache.lists.Load()
		pause := askEvery
		after, until, err := p.upstream.Progress(ctx, p.cache.ResourceVersion())
		if err == nil && until != "" {
			err = p.advance(ctx, lists, after, until)
		}
		if err != nil {
			pause = askAgain
		}
		pace.Sleep(ctx, pause)
	}
}

// advance notes that the cache is complete up to until, once it has reached after. A list that came
// meanwhile may be of another history.
func (p *proof[T]) advance(ctx context.Context, lists uint64, after, until string) error {
	c := p.cache
	last, complete := uint64(0), uint64(0)
	var err error
	if after != "" {
		last, err = parseVersion("progress", after)
	}
	if err == nil {
		complete, err = parseVersion("progress", until)
	}
	if err == nil {
		_, err = c.reach(ctx, last, c.copied)
	}
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.lists.Load() != lists {
		return nil
	}
	return c.bookmark(complete)
}

// unproven is the error of a reader when the upstream could not be asked. A refusal concerns the
// credentials of this program, not those of its client.
func unproven(ctx context.Context, resource schema.GroupResource, err error) error {
	var known apierrors.APIStatus
	switch {
	case errors.As(err, &known) && known.Status().Code >= http.StatusInternalServerError:
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return apierrors.NewTimeoutError(fmt.Sprintf("the upstream of %s did not answer in time", resource), 0)
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the upstream of %s could not be asked for its newest version: %v",
		resource, err))
}

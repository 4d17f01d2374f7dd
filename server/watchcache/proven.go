package watchcache

import (
	"context"
	"time"

	"github.com/tributary-go/tributary/internal/age"
)

// Proof says whether a cache can prove that a read without a version misses no write.
type Proof struct {
	State ProofState
	// Since is when the first question was asked that failed: a write after it may be missing. Err
	// is why the newest one failed. Both are of the state [Failing] alone.
	Since time.Time
	Err   error
}

// ProofState is the state of a [Proof].
type ProofState int

// The states.
const (
	// Unproven is a copy made without [WithUpstream]: a read without a version shows the present
	// copy, which may lack the newest writes.
	Unproven ProofState = iota
	// Origin is a cache of a [Revision]: the truth itself.
	Origin
	// Proven is a copy whose upstream answered when it was last asked.
	Proven
	// Failing is a copy whose upstream does not answer, or whose content does not reach the version
	// that its upstream tells. A read without a version fails.
	Failing
)

// proofAge is how old the answer of an upstream may be before whoever looks at the proof has the
// upstream asked again.
const proofAge = time.Second

// Proof is the present state. It does not wait. If the newest answer of the upstream is older than
// a second, it has the upstream asked, for the next call to see.
func (c *Cache[T]) Proof() Proof {
	if c.proof == nil {
		return c.withoutUpstream()
	}
	c.proof.renew()
	return c.proof.state()
}

// againPatience is how long Probe waits for an upstream that has failed to answer.
const againPatience = 500 * time.Millisecond

// Probe is [Cache.Proof] that waits, until ctx ends, for an answer of the upstream that is no older
// than a second. An upstream that fails already has half a second to answer.
func (c *Cache[T]) Probe(ctx context.Context) Proof {
	if c.proof == nil {
		return c.withoutUpstream()
	}
	if q := c.proof.renew(); q != nil {
		if c.proof.state().State == Failing {
			within, cancel := context.WithTimeout(ctx, againPatience)
			defer cancel()
			ctx = within
		}
		select {
		case <-q.done:
		case <-ctx.Done():
		}
	}
	return c.proof.state()
}

func (c *Cache[T]) withoutUpstream() Proof {
	if c.revision != nil {
		return Proof{State: Origin}
	}
	return Proof{State: Unproven}
}

// failure is a row of failed attempts; its zero value is a success.
type failure struct {
	since time.Time // when the first of them began
	err   error     // of the newest
}

// note takes in the outcome of an attempt.
func (f *failure) note(began time.Time, err error) {
	switch {
	case err == nil:
		*f = failure{}
	case f.err == nil:
		*f = failure{began, err}
	default:
		f.err = err
	}
}

// shortfall is a copy that did not reach a version within the wait of a reader.
type shortfall struct {
	failure
	version uint64
}

// compared takes in whether the copy has reached a version that the upstream told after asked.
func (p *proof[T]) compared(asked time.Time, version uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behind.note(asked, err)
	p.behind.version = version
}

// renew has the upstream asked if its newest answer is too old, and returns the question that is
// under way; nil if the answer will do.
func (p *proof[T]) renew() *question {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case age.Of(p.askedAt) < proofAge:
		return nil
	case p.asking != nil:
		return p.asking
	}
	return p.joinLocked(time.Now())
}

func (p *proof[T]) state() Proof {
	now := p.cache.current()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.behind.err != nil && now >= p.behind.version {
		p.behind = shortfall{}
	}
	for _, f := range []failure{p.unheard, p.behind.failure} {
		if f.err != nil {
			return Proof{Failing, f.since, f.err}
		}
	}
	return Proof{State: Proven}
}

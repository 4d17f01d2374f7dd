package reflector

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/store"
)

const (
	// probePatience is how long a probe may take. A server that is well answers at once.
	probePatience = 10 * time.Second
	// probePause is the least time between two probes of one copy.
	probePause = 5 * time.Second
)

// prober asks for the server's version beside the watch, by a consistent LIST of one object: each
// minute, and sooner after an interruption. It has a timer, and a goroutine only during a probe.
type prober struct {
	every  time.Duration
	probe  func(context.Context)
	random func() float64

	ctx     context.Context
	timer   *time.Timer
	running sync.WaitGroup
	own     time.Time // of the copy's last probe of its own; of the goroutine of probe

	mu     sync.Mutex // guards the fields below
	over   bool
	asking bool // a probe is under way
	due    time.Time
	since  time.Time // an older answer will not do: something has happened since
	last   time.Time // when the last probe began
}

// start begins the probes of a run.
func (p *prober) start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ctx, p.due = ctx, time.Now().Add(p.pause())
	p.timer = time.AfterFunc(time.Until(p.due), p.fire)
}

// pause is the time to the next probe: up to a tenth less than every, so that the probes of many
// copies spread.
func (p *prober) pause() time.Duration {
	return p.every - time.Duration(p.random()*float64(p.every/10))
}

// within makes the next probe due after delay, unless it is due sooner.
func (p *prober) within(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Now()
	p.soonerLocked(delay)
}

// goOn makes the next probe due as soon as it may be: the last one has left something to be done.
func (p *prober) goOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.soonerLocked(0)
}

func (p *prober) soonerLocked(delay time.Duration) {
	due := time.Now().Add(delay)
	if earliest := p.last.Add(probePause); due.Before(earliest) {
		due = earliest
	}
	if !p.over && due.Before(p.due) {
		if p.due = due; !p.asking { // else the probe under way sets the timer
			p.timer.Reset(time.Until(due))
		}
	}
}

// fresh is how old the answer to another copy's probe may be.
func (p *prober) fresh(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since := now.Add(-p.every / 2); since.After(p.since) {
		return since
	}
	return p.since
}

func (p *prober) fire() {
	if !p.begin() {
		return
	}
	defer p.running.Done()
	p.probe(p.ctx)
	p.again()
}

func (p *prober) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.asking {
		return false
	}
	p.asking = true
	p.running.Add(1)
	p.last = time.Now()
	p.due = p.last.Add(p.pause())
	return true
}

func (p *prober) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking = false; !p.over {
		p.timer.Reset(max(0, time.Until(p.due)))
	}
}

// stop ends the probes, and waits for the one under way, whose context has ended.
func (p *prober) stop() {
	p.mu.Lock()
	p.over = true
	p.timer.Stop()
	p.mu.Unlock()
	p.running.Wait()
}

// probe asks for a proof, and takes in the answer. It is called by the prober alone.
func (r *Reflector[T]) probe(ctx context.Context) {
	if !r.status.follows() {
		r.prober.within(r.soon())
		r.announce()
		return
	}
	asked := time.Now()
	known, shared := r.origin.told(r.prober.fresh(asked))
	got, err := r.sweeps(ctx, asked, shared)
	if err == nil && r.sweep.state != swept {
		r.prober.goOn()
	}
	if err == nil && got.asked.IsZero() {
		if shared && !r.asksItself(asked) {
			r.toldBy(known)
			return
		}
		r.prober.own = asked
		got, err = r.byName(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	if err == nil { // one that was raised within the minute after a relist is still to be healed
		err = r.Status().Contradiction
	}
	class := classify(err)
	switch {
	case errors.Is(err, errNoVersion): // it proves nothing, and contradicts nothing
	case class == WentBack, class == History, class == Drift:
		r.origin.tell(claim{asked: asked}, true)
		r.doubt(err)
	case class == Forbidden, class == Refused: // the role has watch alone, or the server no limits
		r.proveByList()
	case err == nil:
		r.origin.tell(got, false)
		r.claimed(got)
	}
	r.status.change(func(s *Status) { s.ProbeErr = err })
	r.announce()
}

// asksItself reports whether a cache has relied on the probes of others for long enough, or one of
// the others was contradicted.
func (r *Reflector[T]) asksItself(now time.Time) bool {
	_, compared := r.status.comparison()
	return r.origin.contradicted(r.prober.own) || now.Sub(r.prober.own) >= ownProbe && now.Sub(compared) >= ownProbe
}

// toldBy takes in the answer to another copy's probe. If this copy has moved since, its version may
// be newer than the answer.
func (r *Reflector[T]) toldBy(c claim) {
	if s := r.Status(); c.version.Before(store.Version(s.ResourceVersion)) && s.LastProgress.Before(c.asked) {
		r.doubt(stream.ErrWentBack)
		return
	}
	r.claimed(c)
	r.announce()
}

// proveByList proves a copy that no probe can prove. The lists take a fiftieth of the time at most.
func (r *Reflector[T]) proveByList() {
	if r.status.mayList(time.Now()) {
		r.doubt(errUnproven)
	}
}

// claimed takes in a version that the server named. If the copy has it, nothing has been missed:
// the silence of a watch is that of a collection without changes.
func (r *Reflector[T]) claimed(c claim) {
	var watching, proven, silent bool
	r.status.change(func(s *Status) {
		p := &r.status.proof
		p.named(c, s.ResourceVersion)
		s.ProvenAt = p.at
		watching, proven = s.Phase == Watching, len(p.claims) == 0
		silent = s.Class == Silent || len(p.claims) > 1 && s.LastContact.Before(p.claims[0].asked)
	})
	if guard := r.watching.Load(); guard != nil && watching && proven {
		guard.Heard(time.Now())
	}
	switch {
	case !watching:
	case proven, !silent:
		r.recovered(false)
	case !r.bookmarks.Load():
		// Two probes in a row, and not a sign from a server that was never seen to send bookmarks:
		// only a list can prove the copy.
		r.proveByList()
	}
}

// doubt shows the reason at once, and ends the watch under way for a relist.
func (r *Reflector[T]) doubt(reason error) {
	if class := classify(reason); class != OK {
		r.failing(class, reason, time.Now())
	}
	r.doubts.Store(&reason)
	if guard := r.watching.Load(); guard != nil {
		guard.End(errDoubted)
	}
}

// Doubt says that the copy differs from its server. The copy is not right ([Drift]) until a relist
// has replaced it, which is made at once, but at most once a minute. Doubt is for programs that
// know more than the reflector, such as informer.Verify. It does not block; before and after Run it
// has no effect.
func (r *Reflector[T]) Doubt(reason error) {
	if phase := r.Status().Phase; phase != Idle && phase != Stopped {
		r.doubt(driftError{reason})
		r.announce()
	}
}

// doubted takes in a doubt, on the goroutine of Run.
func (r *Reflector[T]) doubted(reason error) {
	now := time.Now()
	class := classify(reason)
	if class != OK && r.Status().Class != class { // the end of the request under way hides it
		r.failing(class, reason, now)
	}
	r.machine.doubted(class, now)
	r.announce()
}

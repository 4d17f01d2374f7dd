package reflector

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/internal/weakly"
	"github.com/tributary-go/tributary/store"
)

const (
	// probePatience is how long a probe may take. A server that is well answers at once.
	probePatience = 10 * time.Second
	// probePause is the least time between two probes of one copy.
	probePause = 5 * time.Second
	// After refusedProbes refusals in a row, a list is the proof. A server that starts answers 403
	// until it has read its roles, although it serves watches already.
	refusedProbes = 3
)

// prober asks for the server's version beside the watch, by a consistent LIST of one object: each
// minute, and sooner after an interruption. It has a timer, and a goroutine only during a probe.
// Of copies that share their probes, one asks, and the others take its answer on its goroutine: of
// 300 idle copies, one wakes.
type prober struct {
	every  time.Duration
	probe  func(context.Context)
	hears  func() bool // takes in the answer to another copy's probe, if that will do
	random func() float64

	ctx     context.Context
	timer   *time.Timer
	running sync.WaitGroup
	refused int // probes since one was answered; of the goroutine of probe

	mu     sync.Mutex // guards the fields below
	asking bool       // a probe is under way
	own    time.Time  // of the copy's last probe of its own
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

// within makes the next probe due after delay, unless it is due sooner: something has happened.
func (p *prober) within(delay time.Duration) {
	p.mu.Lock()
	p.since = time.Now()
	p.mu.Unlock()
	p.goOn(delay)
}

// goOn is within for what the last probe has left to be done.
func (p *prober) goOn(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := time.Now().Add(delay)
	if earliest := p.last.Add(probePause); due.Before(earliest) {
		due = earliest
	}
	if p.ctx.Err() == nil && due.Before(p.due) {
		if p.due = due; !p.asking { // else the probe under way sets the timer
			p.timer.Reset(time.Until(due))
		}
	}
}

// times are how old the answer to another copy's probe may be, and when the last own one was.
func (p *prober) times(now time.Time) (fresh, own time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since := now.Add(-p.every / 2); since.After(p.since) {
		return since, p.own
	}
	return p.since, p.own
}

// asks notes a probe of the copy's own.
func (p *prober) asks(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own = now
}

// hear has the copy take the answer to another copy's probe in place of its own, if that is due
// soon.
func (p *prober) hear() {
	p.mu.Lock()
	due := p.due
	if p.ctx.Err() != nil || p.asking || time.Until(due) > p.every/2 {
		p.mu.Unlock()
		return
	}
	p.running.Add(1)
	p.mu.Unlock()
	defer p.running.Done()
	heard := p.hears()
	p.mu.Lock()
	defer p.mu.Unlock()
	if heard && !p.asking && p.due.Equal(due) && p.ctx.Err() == nil { // nothing has happened since
		p.due = time.Now().Add(p.pause())
		p.timer.Reset(time.Until(p.due))
	}
}

func (p *prober) fire() {
	if !p.begin() {
		return
	}
	defer p.running.Done()
	p.probe(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking = false; p.ctx.Err() == nil {
		p.timer.Reset(max(0, time.Until(p.due)))
	}
}

func (p *prober) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil || p.asking {
		return false
	}
	p.asking = true
	p.running.Add(1)
	p.last = time.Now()
	p.due = p.last.Add(p.pause())
	return true
}

// stop waits for the probe under way. The context has ended, so that none begins any more.
func (p *prober) stop() {
	p.mu.Lock()
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
	plan := r.schedule(asked)
	got, err := r.sweeps(ctx, asked, plan)
	if err == nil && r.sweep.state != swept {
		r.prober.goOn(0)
	}
	if err == nil && got.asked.IsZero() {
		if plan.shared && !plan.own {
			r.toldBy(plan.newest)
			return
		}
		r.prober.asks(asked)
		got, err = r.byName(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	if err == nil { // one that was raised within the minute after a relist is still to be healed
		err = r.Status().Contradiction
	}
	class := Classify(err)
	switch {
	case errors.Is(err, errNoVersion): // it proves nothing, and contradicts nothing
	case class == WentBack, class == History, class == Drift:
		r.origin.tell(claim{asked: asked}, true)
		r.doubt(err)
	case class == Forbidden, class == Refused: // the role has watch alone, or the server no limits
		if r.prober.refused++; r.prober.refused < refusedProbes {
			r.prober.goOn(0)
		} else {
			r.proveByList()
		}
	case err == nil:
		r.prober.refused = 0
		r.origin.tell(got, false)
		r.claimed(got)
	}
	r.status.change(func(s *Status) { s.ProbeErr = err })
	r.announce()
	if err == nil {
		r.origin.share(&r.prober)
	}
}

// hears takes in the answer to another copy's probe, and reports whether that will do.
func (r *Reflector[T]) hears() bool {
	if !r.status.follows() {
		return false
	}
	plan := r.schedule(time.Now())
	will := plan.shared && !plan.own && !plan.sweep
	if will {
		r.toldBy(plan.newest)
	}
	return will
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
		r.recovered()
	case !r.bookmarks.Load():
		// Two probes in a row, and not a sign from a server that was never seen to send bookmarks:
		// only a list can prove the copy.
		r.proveByList()
	}
}

// doubt shows the reason at once, and ends the watch under way for a relist.
func (r *Reflector[T]) doubt(reason error) {
	if class := Classify(reason); class != OK {
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
		r.doubt(driftError(reason))
		r.announce()
	}
}

// doubted takes in a doubt, on the goroutine of Run.
func (r *Reflector[T]) doubted(reason error) {
	now := time.Now()
	class := Classify(reason)
	if class != OK && r.Status().Class != class { // the end of the request under way hides it
		r.failing(class, reason, now)
	}
	r.machine.doubted(class, now)
	r.announce()
}

// ownProbe is how seldom a cache may rely on the probes of others: only a probe of its own compares
// an object of its selection.
const ownProbe = 15 * time.Minute

// origins has the copies that follow one resource over one client, by that. Their versions are of
// one history (KEP-5504), so that a version which one of them has asked for proves them all.
var origins weakly.Map[any, origin]

// origin is what copies of one resource over one client share.
type origin struct {
	mu     sync.Mutex // guards the fields below
	news   news
	copies map[*prober]struct{} // that run
}

// news is what the copies of an origin tell each other.
type news struct {
	newest  claim     // of the last probe
	doubted time.Time // when one of the copies was contradicted
}

// shareProbes joins the copies of a source's resource. Without an identity it is alone.
func shareProbes(source any) *origin {
	if named, ok := source.(interface{ Origin() any }); ok {
		if key := named.Origin(); key != nil {
			return origins.Get(key, func() *origin { return &origin{} })
		}
	}
	return &origin{}
}

// join adds the prober of a copy that runs, which leaves later.
func (o *origin) join(p *prober) (leave func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.copies == nil {
		o.copies = map[*prober]struct{}{}
	}
	o.copies[p] = struct{}{}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.copies, p)
	}
}

// share has all copies but the one that asked hear its answer.
func (o *origin) share(asked *prober) {
	o.mu.Lock()
	copies := slices.Collect(maps.Keys(o.copies))
	o.mu.Unlock()
	for _, p := range copies {
		if p != asked {
			p.hear()
		}
	}
}

func (o *origin) read() news {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.news
}

// tell shares the answer to a probe, or the doubt that it raised.
func (o *origin) tell(c claim, contradicted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case contradicted:
		o.news.doubted = c.asked
	case c.asked.After(o.news.newest.asked):
		o.news.newest = c
	}
}

// schedule is what the probe of a moment has to do.
type schedule struct {
	news
	shared      bool      // the answer of another cache's probe will do for the version
	own         bool      // an object is compared all the same
	sweep       bool      // all objects are compared
	cut         time.Time // when the cache was last cut off from its server
	interrupted bool      // nothing was compared since
}

// schedule lets a cache rely on the probes of others, until it has done so for long enough, or one
// of the others was contradicted. A sweep and a single object take turns then.
func (r *Reflector[T]) schedule(now time.Time) schedule {
	s := schedule{news: r.origin.read()}
	fresh, own := r.prober.times(now)
	var compared time.Time
	s.cut, compared = r.status.comparison()
	s.shared, s.interrupted = s.newest.asked.After(fresh), compared.Before(s.cut)
	alone, long := now.Sub(own) >= ownProbe, now.Sub(compared) >= ownProbe
	s.own = s.doubted.After(own) || alone && long
	s.sweep = s.interrupted || s.doubted.After(compared) || (alone || !s.shared) && long && own.After(compared)
	return s
}

// proof is the moment of which the copy is proven to be the server's state. A consistent answer
// names a version; when the copy reaches it, the copy is proven for the time of that request.
// Contact proves nothing: a slow link, a proxy or a server without etcd brings old news, too.
type proof struct {
	at     time.Time // zero: nothing is proven
	claims []claim   // versions that the copy has not reached, oldest first
	// cut is when the cache was last cut off from its server, or was replaced by a list of unknown
	// age. What was written before that may be missing, until the proof is younger.
	cut time.Time
	// compared is when the content was last compared with the server's, or replaced by a list. A
	// proof by version alone says nothing of a stream that went on in another history.
	compared time.Time
}

// whole reports whether nothing that was written before the last interruption can be missing.
func (p *proof) whole() bool { return !p.at.Before(p.cut) && !p.compared.Before(p.cut) }

// claim is a version that the server named in a consistent answer.
type claim struct {
	version store.Version
	asked   time.Time // when the request was made, so that the version is not older than this
}

// maxClaims bounds the claims of a copy that falls behind. The oldest is kept, because it is
// reached first, and the newest.
const maxClaims = 8

// listed takes in a list. If it was consistent, it is the proof itself, and of a history in which
// older claims may not exist.
func (p *proof) listed(version string, asked time.Time, consistent bool) {
	p.compared = asked
	if consistent {
		p.at, p.claims = p.compared, nil
		return
	}
	p.cut = p.compared
	p.reached(version)
}

// named takes in a claim, and the version that the copy has by now. Older claims of newer versions
// are of a history that the server has no more.
func (p *proof) named(c claim, held string) {
	if n := len(p.claims); n > 0 && !c.asked.After(p.claims[n-1].asked) { // it is known
		p.reached(held)
		return
	}
	p.claims = slices.DeleteFunc(p.claims, func(old claim) bool { return c.version.Before(old.version) })
	if len(p.claims) == maxClaims {
		p.claims = slices.Delete(p.claims, 1, 2)
	}
	p.claims = append(p.claims, c)
	p.reached(held)
}

// reached takes in the version that the copy has. It is called for each event.
func (p *proof) reached(version string) {
	for len(p.claims) > 0 && store.Version(version).Reaches(p.claims[0].version) {
		p.at = p.claims[0].asked
		p.claims = slices.Delete(p.claims, 0, 1)
	}
}

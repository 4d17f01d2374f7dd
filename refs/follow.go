package refs

import (
	"cmp"
	"context"
	"math/rand/v2"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/internal/sending"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// shortLife: a watch that ended sooner after its state counts as a failure, so that a server which
// cuts every connection is not asked in a tight loop.
const shortLife = time.Second

// follow begins to read a name, and to follow it. The caller holds the lock.
func (r *Refs[T]) follow(e *entry[T]) {
	if r.running == nil {
		return
	}
	defer e.signal.Broadcast()
	r.pursue(r.newRun(e, 0), func(now *run) request { return &reading[T]{refs: r, e: e, run: now} })
}

// followed is a state that is read, and the watch that follows it: of a name, or of the metadata of
// a namespace. The lock of Refs guards it.
type followed struct {
	run      *run      // the present attempt; nil if there is none
	version  string    // up to which the state is known
	contact  time.Time // the last sign that it is the server's
	failures int       // attempts in a row
	doubt    bool      // the next state must be the server's newest
	back     bool      // the last answer was older than the state
}

// begins takes in the state that a request began with. A state older than the last one is believed
// when the server tells it twice: its etcd was restored from a backup.
func (f *followed) begins(now *run, version string, liveness time.Duration) error {
	switch {
	case f.run != now:
		return errAgain
	case !f.back && store.Version(version).Before(store.Version(f.version)):
		f.back = true
		return stream.ErrWentBack
	}
	now.read = time.Now()
	now.Allow(stream.UntilFirst(liveness))
	f.version, f.contact, f.back, f.doubt = version, now.read, false, false
	return nil
}

// moves takes in the version of an event or a bookmark. From the first on, the server is known to
// send some.
func (f *followed) moves(now *run, version string, liveness time.Duration) error {
	switch {
	case f.run != now:
		return errAgain
	case store.Version(version).Before(store.Version(f.version)):
		return stream.ErrUnplaced
	}
	f.version, f.contact = version, time.Now()
	if now.Heard(f.contact); !now.news {
		now.news = true
		now.Allow(liveness)
	}
	return nil
}

// ends takes in the end of the attempt. It is a clean one if the state was followed, until the
// watch ended as watches do.
func (f *followed) ends(class reflector.Class) (clean bool) {
	lived := !f.run.read.IsZero() && time.Since(f.run.read) >= shortLife
	if lived {
		f.failures = 0
	}
	if lived && (class == reflector.OK || class == reflector.Disconnected) {
		return true
	}
	f.failures++
	return false
}

// backoff is a random delay after so many failures in a row.
func (f *followed) backoff() time.Duration {
	return pace.Jitter(pace.Doubled(pace.Initial, pace.Limit, f.failures-1))
}

// newRun prepares the next attempt. A state that is only resumed may come from the server's cache;
// one that was asked for must be the server's newest.
func (r *Refs[T]) newRun(e *entry[T], delay time.Duration) *run {
	n := r.prepare(delay)
	n.covers, n.toldAt = e.wanted, e.toldAt
	if n.lists = !r.rest.Over(time.Now()) || !watchlist.Supported(e.space.source); n.lists {
		n.Allow(r.options.liveness)
	}
	if e.known && e.covered >= e.wanted && !e.doubt && e.failure == nil {
		switch n.from = e.version; {
		case store.Version(e.version).Before(store.Version(e.toldAt)):
			n.from = e.toldAt
		case !e.agrees(): // etcd may have been restored
			n.from = ""
		}
	}
	e.phase, e.run = opening, n
	return n
}

func (r *Refs[T]) prepare(delay time.Duration) *run {
	n := &run{delay: delay, urgent: make(chan struct{}), Guard: stream.NewGuard(r.running, stream.UntilState(r.options.liveness))}
	request, timeout := stream.Ending(metav1.ListOptions{}, r.options.watchTimeout, rand.Float64())
	n.ends = request.TimeoutSeconds
	n.Limit(timeout)
	return n
}

// want has the next Get read the state again. The caller holds the lock.
func (r *Refs[T]) want(e *entry[T]) {
	r.asked++
	e.wanted = r.asked
	if e.run != nil && e.run.asked.IsZero() { // its request comes later, and will do
		e.run.covers, e.run.from = e.wanted, ""
	}
}

// leave ends the present attempt for good. The caller holds the lock.
func (r *Refs[T]) leave(e *entry[T], to phase, cause error) {
	if e.run != nil {
		e.run.End(cause)
		e.run = nil
	}
	e.phase = to
}

// again reads the state anew, at once. The caller holds the lock.
func (r *Refs[T]) again(e *entry[T]) {
	r.leave(e, idle, errAgain)
	r.follow(e)
}

// attempt makes the request of a run: after its delay, in its turn, and if it is still wanted. It
// returns when the request has ended.
func (r *Refs[T]) attempt(run *run, s request) (err error) {
	defer run.Stop()
	if !pace.Sleep(run.Ctx, run.delay) {
		return context.Cause(run.Ctx)
	}
	if run.turn, err = r.gate.enter(run.Ctx, run.urgent); err != nil {
		return err
	}
	if err = errAgain; r.send(run, s) {
		err = s.read(run.Waiting(false, func(*sending.Wait) {}))
	}
	if run.Ctx.Err() != nil {
		err = context.Cause(run.Ctx)
	}
	r.leaveTurn(run, err)
	return err
}

// send notes that the request is sent now, unless it is not wanted any more.
func (r *Refs[T]) send(run *run, s request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	run.asked = time.Now()
	run.urgent = nil
	run.Begin()
	return s.wanted()
}

// request is what a run asks for. wanted is called under the lock when it is sent, and read returns
// when its watch has ended. ended takes that in, and returns the next run; nil if another one has
// begun, or none is wanted.
type request interface {
	wanted() bool
	read(ctx context.Context) error
	ended(err error) *run
}

// pursue makes an attempt and those that follow it, until Run ends. The caller holds the lock.
func (r *Refs[T]) pursue(next *run, requestOf func(*run) request) {
	ctx := r.running
	r.followers.Go(func() {
		for next != nil {
			s := requestOf(next)
			err := r.attempt(next, s)
			if ctx.Err() != nil {
				return
			}
			next = s.ended(err)
		}
	})
}

// reading is the request of a run. It is a [stream.Sink].
type reading[T store.Object] struct {
	refs *Refs[T]
	e    *entry[T]
	run  *run
	obj  T // of the state, until that has ended
}

func (s *reading[T]) wanted() bool { return s.e.run == s.run }

// read reads the state of a name and follows it.
func (s *reading[T]) read(ctx context.Context) error {
	source := s.e.space.source
	list := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, s.e.name.Name).String()}
	watch := func(request metav1.ListOptions) metav1.ListOptions {
		request.FieldSelector, request.TimeoutSeconds = list.FieldSelector, s.run.ends
		return request
	}
	if !s.run.lists {
		return stream.WatchListTo(ctx, source, watch(stream.WatchList(s.run.from)), s)
	}
	return stream.ListAndWatchTo(ctx, source, list, func(version string) metav1.ListOptions { return watch(stream.Watch(version)) }, s)
}

// leaveTurn gives a turn back, at the state or at the end of the request.
func (r *Refs[T]) leaveTurn(run *run, err error) {
	if run.turn == nil {
		return
	}
	news, answers := run.turn.leave(err)
	if run.turn = nil; !news {
		return
	}
	switch class := reflector.Classify(err); {
	case answers:
		r.log.Info("The server answers again")
	case class == reflector.TLS, class == reflector.Credentials, class == reflector.Unauthorized, class == reflector.WrongAnswer:
		r.log.Error(err, "The server does not answer", "class", class) // a person must act
	default:
		r.log.Info("The server does not answer", "class", class, "reason", err.Error())
	}
}

// check refuses an object of another name: the source has not selected by name.
func (s *reading[T]) check(event listwatch.Event[T]) error {
	if pointer.None(event.Object) || event.Object.GetName() == s.e.name.Name && event.Object.GetNamespace() == s.e.name.Namespace {
		return nil
	}
	return errOther
}

// Item takes in the object, which is a sign of life.
func (s *reading[T]) Item(event listwatch.Event[T]) error {
	if err := s.check(event); err != nil {
		return err
	}
	s.obj = event.Object
	s.run.Heard(time.Now())
	s.refs.mu.Lock()
	defer s.refs.mu.Unlock()
	s.refs.count(event)
	return nil
}

// count counts an object or a change. The caller holds the lock.
func (r *Refs[T]) count(event listwatch.Event[T]) {
	r.events++
	r.bytes += uint64(event.Bytes)
}

// State takes in the state that the request began with.
func (s *reading[T]) State(version string) error {
	obj := s.obj
	s.obj = *new(T)
	s.refs.leaveTurn(s.run, nil)
	r, e := s.refs, s.e
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := e.begins(s.run, version, r.options.liveness); err != nil {
		return err
	}
	r.alarm(e, reflector.OK, nil)
	e.phase, e.covered, e.failure = following, s.run.covers, nil
	if err := r.take(e, obj); err != nil || !e.space.live() {
		return err
	}
	return r.settle(e)
}

// Change takes in an event or a bookmark.
func (s *reading[T]) Change(event listwatch.Event[T]) error {
	if err := s.check(event); err != nil {
		return err
	}
	r, e := s.refs, s.e
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := e.moves(s.run, event.ResourceVersion, r.options.liveness); err != nil {
		return err
	}
	if event.Type != watch.Bookmark {
		r.count(event)
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		return r.take(e, event.Object)
	case watch.Deleted:
		var none T
		return r.take(e, none)
	}
	e.signal.Broadcast() // a bookmark, for which WaitFor may wait
	return nil
}

// take makes obj the state of e, and tells it. The caller holds the lock.
func (r *Refs[T]) take(e *entry[T], obj T) error {
	defer e.signal.Broadcast()
	old := e.obj
	e.known = true
	if !same(old, obj) {
		e.obj = obj
		for reader := range r.readers {
			reader.note(e, old)
		}
	}
	if immutable(obj) {
		e.run, e.phase = nil, kept
		return errKept
	}
	return nil
}

// same reports whether two states are one: a state that is read again. Of two histories, versions
// may be the same and the objects not.
func same[T store.Object](a, b T) bool {
	if pointer.None(a) || pointer.None(b) {
		return pointer.None(a) && pointer.None(b)
	}
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion() && a.GetUID() != "" && reflect.DeepEqual(a, b)
}

func (s *reading[T]) ended(err error) *run {
	r, e, done := s.refs, s.e, s.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.run != done {
		return nil
	}
	defer e.signal.Broadcast()
	now, class := time.Now(), reflector.Classify(err)
	if e.ends(class) {
		return r.newRun(e, pace.Jitter(pace.ResumeSpread))
	}
	delay := pace.Told(err) + e.backoff()
	switch {
	case class == reflector.OK, class == reflector.Disconnected && !done.read.IsZero(): // at once
	case done.read.IsZero() && !done.lists && noWatchList(class):
		r.rest.Begin(now)
		delay = 0
	case done.read.IsZero() && r.gate.keeps(class):
		e.failure, delay = &failure{class, err, now, !ofServer(class)}, pace.Told(err)+pace.Jitter(pace.ResumeSpread)
	case class == reflector.WentBack, class == reflector.TooLarge, class == reflector.Expired:
		e.doubt, delay = true, pace.Jitter(pace.ResumeSpread)
		if e.failures > 2 {
			delay = e.backoff()
		}
	default:
		e.failure, e.doubt = &failure{class, err, now, false}, true
		r.alarm(e, class, err)
	}
	return r.newRun(e, delay)
}

// alarm logs the first name that fails with a class, and that no name does any more: as errors if a
// person must act. The caller holds the lock.
func (r *Refs[T]) alarm(e *entry[T], class reflector.Class, err error) {
	before := cmp.Or(e.alarm, reflector.OK)
	if e.alarm = class; before == class {
		return
	}
	r.alarms[before]--
	r.alarms[class]++
	if before != reflector.OK && r.alarms[before] == 0 {
		r.log.Info("No name is failing any more", "class", before, "name", e.name)
	}
	switch {
	case class == reflector.OK || r.alarms[class] > 1:
	case answers(class):
		r.log.Error(err, "A name is failing", "class", class, "name", e.name)
	default:
		r.log.Info("A name is failing", "class", class, "name", e.name, "reason", err.Error())
	}
}

// noWatchList reports whether a watch list may have failed for being one.
func noWatchList(class reflector.Class) bool {
	return class == reflector.Refused || class == reflector.Incomplete || class == reflector.Silent
}

// patrol ends silent watches, and those of objects without a Get for long, until ctx ends. One
// goroutine for all names takes the place of a timer for each.
func (r *Refs[T]) patrol(ctx context.Context) {
	for pace.Sleep(ctx, r.options.liveness/18) {
		r.mu.Lock()
		now := time.Now()
		for _, e := range r.names {
			r.inspect(e, now)
		}
		for _, s := range r.spaces {
			if s.run != nil {
				s.run.Check()
			}
			r.weigh(s)
		}
		r.mu.Unlock()
	}
}

func (r *Refs[T]) inspect(e *entry[T], now time.Time) {
	run := e.run
	if run == nil {
		// an echo would have come
		if e.shared() && !e.agrees() && now.Sub(e.contact) > r.options.liveness/9 {
			e.doubt = true
			r.again(e)
		}
		return
	}
	if run.Check(); run.Ctx.Err() == nil && e.phase == following && r.unread(e, now) && now.Sub(run.read) > r.options.idle {
		r.leave(e, idle, errIdle)
		e.signal.Broadcast() // a WaitFor reads it again
	}
}

// unread reports whether the last Get was long ago, and there is no reader of changes.
func (r *Refs[T]) unread(e *entry[T], now time.Time) bool {
	return r.options.idle > 0 && len(r.readers) == 0 && now.Sub(e.used) > r.options.idle
}

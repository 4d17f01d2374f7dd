package refs

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

const (
	// shortLife: a watch that ended sooner after its state counts as a failure, so that a server
	// which cuts every connection is not asked in a tight loop.
	shortLife = time.Second
	// statePatience is how long a watch list may bring nothing. A server that ignores the request
	// is silent.
	statePatience = 10 * time.Second
	// firstPatience is how many liveness periods a watch gets until its first event or bookmark: a
	// server's first bookmark may take two minutes.
	firstPatience = 2
	// overtime is what a server gets to end a watch itself.
	overtime = 30 * time.Second
	// listingPeriod is how long LIST stands in for watch lists that the server did not answer.
	listingPeriod = time.Hour
)

// follow begins to read a name, and to follow it. The caller holds the lock.
func (r *Refs[T]) follow(e *entry[T]) {
	if r.running == nil {
		return
	}
	first := r.newRun(e, 0)
	e.signal.Broadcast()
	r.followers.Go(func() {
		for next := first; next != nil; {
			s := &stream[T]{refs: r, e: e, run: next}
			err := r.attempt(next, func() bool { return e.run == next }, s.read)
			next = r.ended(e, next, err)
		}
	})
}

// newRun prepares the next attempt. A state that is only resumed may come from the server's cache;
// one that was asked for must be the server's newest.
func (r *Refs[T]) newRun(e *entry[T], delay time.Duration) *run {
	n := r.prepare(delay)
	n.covers = e.wanted
	n.lists = time.Now().Before(r.listing) || !watchlist.Supported(e.space.source)
	if e.known && e.covered >= e.wanted && !e.doubt && e.failure == nil {
		if n.from = e.version; e.behind() {
			n.from = e.told
		}
	}
	e.phase, e.run = opening, n
	return n
}

func (r *Refs[T]) prepare(delay time.Duration) *run {
	n := &run{delay: delay, urgent: make(chan struct{})}
	n.timeout = r.options.watchTimeout + jitter(r.options.watchTimeout)
	n.ctx, n.cancel = context.WithCancelCause(r.running)
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
		e.run.cancel(cause)
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
func (r *Refs[T]) attempt(run *run, wanted func() bool, request func(t **turn) error) error {
	defer run.cancel(nil)
	if !pace.Sleep(run.ctx, run.delay) {
		return context.Cause(run.ctx)
	}
	turn, err := r.gate.enter(run.ctx, r.urgent(run))
	if err != nil {
		return err
	}
	if err = errAgain; r.send(run, wanted) {
		err = request(&turn)
	}
	if run.ctx.Err() != nil {
		err = context.Cause(run.ctx)
	}
	r.leaveTurn(&turn, err)
	return err
}

func (r *Refs[T]) urgent(run *run) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return run.urgent
}

// send notes that the request is sent now, unless it is not wanted any more.
func (r *Refs[T]) send(run *run, wanted func() bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	run.asked = time.Now()
	run.heard, run.urgent = run.asked, nil
	return wanted()
}

// stream is the request of a run.
type stream[T store.Object] struct {
	refs *Refs[T]
	e    *entry[T]
	run  *run
	turn **turn // of a nil turn once the state has come
}

// read reads the state of a name and follows it until the watch ends.
func (s *stream[T]) read(t **turn) error {
	if s.turn = t; s.run.lists {
		return s.listAndWatch()
	}
	return s.watchList()
}

// leaveTurn gives a turn back, at the state or at the end of the request.
func (r *Refs[T]) leaveTurn(t **turn, err error) {
	if *t == nil {
		return
	}
	news := (*t).leave(err)
	*t = nil
	switch {
	case news && !ofServer(classify(err)):
		r.log.Info("The server answers again")
	case news:
		r.log.Info("The server does not answer", "class", classify(err), "reason", err.Error())
	}
}

// request selects the one object.
func (s *stream[T]) request() metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, s.e.name.Name).String()}
}

// watch makes a request one for a watch.
func (r *run) watch(request metav1.ListOptions) metav1.ListOptions {
	seconds := int64(r.timeout / time.Second)
	request.TimeoutSeconds = &seconds
	request.AllowWatchBookmarks = true
	return request
}

// watchList makes a request one for a watch that sends the state first (KEP-3157).
func (r *run) watchList(request metav1.ListOptions) metav1.ListOptions {
	yes := true
	request = r.watch(request)
	request.SendInitialEvents = &yes
	request.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	request.ResourceVersion = r.from
	return request
}

// watchList reads the state and the changes by one request.
func (s *stream[T]) watchList() error {
	request := s.run.watchList(s.request())
	var state T
	initial := true
	for event, err := range s.e.space.source.Watch(s.run.ctx, request) {
		if err == nil {
			err = s.check(event)
		}
		switch {
		case err != nil:
			return err
		case !initial:
			err = s.change(event)
		case event.Type == watch.Added:
			state = event.Object
			s.received(event)
		case event.Type == watch.Bookmark && event.InitialEventsEnd:
			initial = false
			err = s.state(state, event.ResourceVersion)
		case event.Type != watch.Bookmark:
			err = errIncomplete
		}
		if err != nil {
			return err
		}
	}
	if initial {
		return errIncomplete
	}
	return nil
}

// listAndWatch is for servers without watch lists.
func (s *stream[T]) listAndWatch() error {
	var state T
	list := s.e.space.source.List(s.run.ctx, s.request())
	for obj, err := range list.Items {
		item := listwatch.Event[T]{Object: obj}
		if err == nil {
			err = s.check(item)
		}
		if err != nil {
			return err
		}
		state = obj
		s.received(item)
	}
	version := list.Meta().ResourceVersion
	if err := s.state(state, version); err != nil {
		return err
	}
	request := s.run.watch(s.request())
	request.ResourceVersion = version
	for event, err := range s.e.space.source.Watch(s.run.ctx, request) {
		if err == nil {
			err = s.check(event)
		}
		if err == nil {
			err = s.change(event)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check refuses an object of another name: the source has not selected by name.
func (s *stream[T]) check(event listwatch.Event[T]) error {
	if pointer.None(event.Object) || event.Object.GetName() == s.e.name.Name && event.Object.GetNamespace() == s.e.name.Namespace {
		return nil
	}
	return errOther
}

// received notes a part of the state, which is a sign of life.
func (s *stream[T]) received(event listwatch.Event[T]) {
	s.refs.mu.Lock()
	defer s.refs.mu.Unlock()
	s.run.heard = time.Now()
	s.refs.count(event)
}

// count counts an object or a change. The caller holds the lock.
func (r *Refs[T]) count(event listwatch.Event[T]) {
	r.events++
	r.bytes += uint64(event.Bytes)
}

// state takes in the state that a request began with. A state older than the last one is believed
// when the server tells it twice: its etcd was restored from a backup.
func (s *stream[T]) state(obj T, version string) error {
	s.refs.leaveTurn(s.turn, nil)
	r, e := s.refs, s.e
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.run != s.run {
		return errAgain
	}
	if e.known && store.Version(version).Before(store.Version(e.version)) && !e.back {
		e.back = true
		return errWentBack
	}
	now := time.Now()
	s.run.read, s.run.heard, e.contact = now, now, now
	if e.back {
		e.told = ""
	}
	e.back, e.doubt, e.failure = false, false, nil
	e.phase, e.covered, e.version = following, s.run.covers, version
	if err := r.take(e, obj); err != nil || !e.space.live() {
		return err
	}
	return r.settle(e)
}

// change takes in an event or a bookmark.
func (s *stream[T]) change(event listwatch.Event[T]) error {
	r, e := s.refs, s.e
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.run != s.run {
		return errAgain
	}
	if store.Version(event.ResourceVersion).Before(store.Version(e.version)) {
		return errUnplaced
	}
	now := time.Now()
	s.run.heard, s.run.news, e.contact, e.version = now, true, now, event.ResourceVersion
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

// same reports whether two states are one: a state that is read again.
func same[T store.Object](a, b T) bool {
	if pointer.None(a) || pointer.None(b) {
		return pointer.None(a) && pointer.None(b)
	}
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion() && a.GetUID() != ""
}

// ended takes in the end of an attempt, and returns the next one; nil if another has begun, or none
// is wanted.
func (r *Refs[T]) ended(e *entry[T], done *run, err error) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.run != done || r.running == nil || r.running.Err() != nil {
		return nil
	}
	defer e.signal.Broadcast()
	now, class := time.Now(), classify(err)
	lived := !done.read.IsZero() && now.Sub(done.read) >= shortLife
	if lived {
		e.failures = 0
	}
	if lived && (class == reflector.OK || class == reflector.Disconnected) {
		return r.newRun(e, jitter(pace.ResumeSpread))
	}
	e.failures++
	delay := told(err) + backoff(e.failures, pace.Limit)
	switch {
	case class == reflector.OK, class == reflector.Disconnected && !done.read.IsZero(): // at once
	case done.read.IsZero() && !done.lists && noWatchList(class):
		r.listing, delay = now.Add(listingPeriod), 0
	case ofServer(class) && done.read.IsZero():
		e.failure, delay = &failure{class, err, now}, told(err)+jitter(pace.ResumeSpread)
	case class == reflector.WentBack, class == reflector.TooLarge, class == reflector.Expired:
		e.doubt, delay = true, jitter(pace.ResumeSpread)
		if e.failures > 2 {
			delay = backoff(e.failures, pace.Limit)
		}
	default:
		e.failure, e.doubt = &failure{class, err, now}, true
	}
	return r.newRun(e, delay)
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
			if s.share != nil && !s.share.run.asked.IsZero() {
				r.overdue(s.share.run, now)
			}
			r.weigh(s)
		}
		r.mu.Unlock()
	}
}

func (r *Refs[T]) inspect(e *entry[T], now time.Time) {
	run := e.run
	if run == nil || run.asked.IsZero() || r.overdue(run, now) {
		return
	}
	if e.phase == following && r.unread(e, now) && now.Sub(run.read) > r.options.idle {
		r.leave(e, idle, errIdle)
		e.signal.Broadcast() // a WaitFor reads it again
	}
}

// unread reports whether the last Get was long ago, and there is no reader of changes.
func (r *Refs[T]) unread(e *entry[T], now time.Time) bool {
	return r.options.idle > 0 && len(r.readers) == 0 && now.Sub(e.used) > r.options.idle
}

// overdue ends a request over which nothing comes, and one that the server should have ended.
func (r *Refs[T]) overdue(run *run, now time.Time) bool {
	patience := r.options.liveness
	switch {
	case run.read.IsZero() && !run.lists:
		patience = min(statePatience, patience)
	case !run.read.IsZero() && !run.news:
		patience *= firstPatience
	}
	switch {
	case now.Sub(run.heard) > patience:
		run.cancel(errSilent)
	case now.Sub(run.asked) > run.timeout+overtime:
		run.cancel(errDeadline)
	default:
		return false
	}
	return true
}

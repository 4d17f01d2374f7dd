package refs

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// refusedFor is how long names keep their own watches if the watch of their namespace is refused.
const refusedFor = time.Hour

// space is a namespace, as long as it has names.
type space[T store.Object] struct {
	name    string
	source  listwatch.ListerWatcher[T]
	names   int
	share   *share    // nil if each name has its own watch
	refused time.Time // no watch of the namespace is tried before
}

// share is a watch of the metadata of a namespace. The lock of Refs guards it.
//
// While it is live, it tells which objects change, so a name needs no watch: it is read when it was
// told of (entry.told), up to that version. Names come and go without a gap. When the watch goes
// live, its state tells which objects are newer than the held ones, and only names that are up to
// date give up their own watch. When it ends for good, each name begins a watch of its own from the
// version up to which its state is complete.
type share struct {
	run      *run // of the present attempt
	live     bool
	failed   bool   // the last attempt has not become live
	failures int    // in a row
	version  string // up to which it has told everything
	contact  time.Time
}

func (s *space[T]) live() bool { return s.share != nil && s.share.live }

// end ends the watch of the namespace. The caller holds the lock.
func (s *space[T]) end(cause error) {
	if s.share != nil {
		s.share.run.cancel(cause)
		s.share = nil
	}
}

// shared reports whether the watch of the namespace follows the name, or did before it was
// interrupted.
func (e *entry[T]) shared() bool { return e.phase == following && e.run == nil && e.space.share != nil }

// returning: the watch of the namespace has ended, and its first attempt to go on is under way.
func (e *entry[T]) returning() bool {
	return e.shared() && !e.space.share.live && !e.space.share.failed && e.covered >= e.wanted
}

// behind reports whether the state is older than an event of the namespace's watch.
func (e *entry[T]) behind() bool {
	return store.Version(e.version).Before(store.Version(e.told))
}

// complete is the version up to which the state is known.
func (e *entry[T]) complete() string {
	if e.shared() && store.Version(e.version).Before(store.Version(e.space.share.version)) {
		return e.space.share.version
	}
	return e.version
}

func (e *entry[T]) lastContact() time.Time {
	if e.shared() {
		return e.space.share.contact
	}
	return e.contact
}

// weigh begins or ends the watch of a namespace by the number of its names. The caller holds the
// lock.
func (r *Refs[T]) weigh(s *space[T]) {
	many := r.options.share
	switch {
	case r.running == nil || many == 0 || r.source.Metadata == nil:
	case s.share == nil && s.names >= many && time.Now().After(s.refused):
		h := &share{run: r.prepare(0)}
		s.share = h
		r.followers.Go(func() { r.followShare(s, h) })
	case s.share != nil && s.names < (many+1)/2:
		r.part(s, errAlone)
	}
}

// part gives each name a watch of its own. The caller holds the lock.
func (r *Refs[T]) part(s *space[T], cause error) {
	var all []*entry[T]
	for e := range r.in(s) {
		if e.shared() {
			e.contact, e.version = e.lastContact(), e.complete()
			all = append(all, e)
		}
	}
	s.end(cause)
	for _, e := range all {
		r.follow(e)
	}
}

// in yields the entries of a namespace. The caller holds the lock.
func (r *Refs[T]) in(s *space[T]) func(func(*entry[T]) bool) {
	return func(yield func(*entry[T]) bool) {
		for _, e := range r.names {
			if e.space == s && !yield(e) {
				return
			}
		}
	}
}

// followShare keeps a watch of a namespace open, until each name has a watch of its own.
func (r *Refs[T]) followShare(s *space[T], h *share) {
	source := r.source.Metadata(s.name)
	for next := h.run; next != nil; {
		heads := map[*entry[T]]string{} // versions of the state; empty: no object
		wanted := func() bool {
			for e := range r.in(s) {
				heads[e] = ""
			}
			return s.share == h
		}
		err := r.attempt(next, wanted, func(t **turn) error { return r.watchShare(s, h, next, source, heads, t) })
		next = r.endedShare(s, h, next, err)
	}
}

// watchShare reads the versions of a namespace and follows them until the watch ends.
func (r *Refs[T]) watchShare(s *space[T], h *share, run *run, source listwatch.ListerWatcher[*metav1.PartialObjectMetadata],
	heads map[*entry[T]]string, t **turn,
) error {
	for event, err := range source.Watch(run.ctx, run.watchList(metav1.ListOptions{})) {
		switch {
		case err != nil:
		case heads == nil:
			err = r.toldShare(s, h, run, event)
		case event.Type == watch.Added:
			r.head(s, run, event, heads)
		case event.Type == watch.Bookmark && event.InitialEventsEnd:
			r.leaveTurn(t, nil)
			err = r.liveShare(s, h, run, event.ResourceVersion, heads)
			heads = nil
		case event.Type != watch.Bookmark:
			err = errIncomplete
		}
		if err != nil {
			return err
		}
	}
	if heads != nil {
		return errIncomplete
	}
	return nil
}

// head notes the version of an object of the state, if a name follows it.
func (r *Refs[T]) head(s *space[T], run *run, event listwatch.Event[*metav1.PartialObjectMetadata], heads map[*entry[T]]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run.heard = time.Now()
	if e := r.names[types.NamespacedName{Namespace: s.name, Name: event.Object.Name}]; e != nil {
		if _, counted := heads[e]; counted {
			heads[e] = event.ResourceVersion
		}
	}
}

// liveShare compares the names with a state of the namespace. Names that came after the request
// are read again, since the state may have passed them.
func (r *Refs[T]) liveShare(s *space[T], h *share, run *run, version string, heads map[*entry[T]]string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.share != h || h.run != run {
		return errAgain
	}
	if _, comparable := store.Version(version).Compare(store.Version(version)); !comparable {
		return errIncomparable
	}
	if store.Version(version).Before(store.Version(h.version)) {
		return errWentBack
	}
	now := time.Now()
	run.read, run.heard = now, now
	h.live, h.failed, h.version, h.contact = true, false, version, now
	for e := range r.in(s) {
		head, counted := heads[e]
		e.told = ""
		switch {
		case !counted, head == "" && !pointer.None(e.obj):
			e.told = version
		case head != "" && (pointer.None(e.obj) || e.obj.GetResourceVersion() != head):
			e.told = head
		}
		switch {
		case e.shared() && store.Version(version).Before(store.Version(e.version)): // usual, or etcd was restored from a backup
			e.doubt = true
			r.again(e)
		case e.phase == following:
			_ = r.settle(e)
		}
		e.signal.Broadcast()
	}
	return nil
}

// settle leaves a state that has been read to the watch of its namespace, or reads it again if that
// has told a newer one. The caller holds the lock.
func (r *Refs[T]) settle(e *entry[T]) error {
	if e.behind() {
		r.again(e)
		return errAgain
	}
	r.leave(e, following, errShared)
	return errShared
}

// toldShare takes in an event of a namespace.
func (r *Refs[T]) toldShare(s *space[T], h *share, run *run, event listwatch.Event[*metav1.PartialObjectMetadata]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.share != h || h.run != run {
		return errAgain
	}
	if store.Version(event.ResourceVersion).Before(store.Version(h.version)) {
		return errUnplaced
	}
	now := time.Now()
	run.heard, run.news, h.contact, h.version = now, true, now, event.ResourceVersion
	if event.Type == watch.Bookmark {
		for e := range r.in(s) {
			e.signal.Broadcast() // WaitFor may wait for it
		}
		return nil
	}
	e := r.names[types.NamespacedName{Namespace: s.name, Name: event.Object.Name}]
	if e == nil {
		return nil
	}
	if store.Version(e.version).Reaches(store.Version(event.ResourceVersion)) {
		return nil // its own watch was faster
	}
	e.told = event.ResourceVersion
	switch {
	case !e.shared(): // it is being read, or is idle
	case event.Type == watch.Deleted:
		var none T
		e.version = event.ResourceVersion
		return r.take(e, none)
	case r.unread(e, now):
		e.phase = idle
	default:
		r.follow(e)
	}
	return nil
}

// endedShare takes in the end of a watch of a namespace, and returns the next one; nil if names
// have watches of their own now.
func (r *Refs[T]) endedShare(s *space[T], h *share, done *run, err error) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.share != h || r.running == nil || r.running.Err() != nil {
		return nil
	}
	now, class := time.Now(), classify(err)
	lived := h.live && now.Sub(done.read) >= shortLife
	clean := lived && (class == reflector.OK || class == reflector.Disconnected)
	h.live, h.failed = false, !clean
	if h.failures++; lived {
		h.failures = 0
	}
	delay := told(err) + jitter(pace.ResumeSpread)
	switch {
	case clean, ofServer(class) && done.read.IsZero(): // the gate waits for the server
	case ofServer(class), class == reflector.OK, class == reflector.Silent, class == reflector.WentBack,
		class == reflector.TooLarge, class == reflector.Expired, class == reflector.Unplaced:
		h.version = ""
		delay = backoff(max(1, h.failures), pace.Limit)
	default:
		s.refused = now.Add(refusedFor)
		r.log.Info("The namespace is not watched: each name has a watch of its own", "namespace", s.name, "class", class, "reason", err.Error())
		r.part(s, errAlone)
		return nil
	}
	for e := range r.in(s) {
		if e.shared() {
			e.signal.Broadcast()
		}
	}
	h.run = r.prepare(delay)
	h.run.from = h.version
	return h.run
}

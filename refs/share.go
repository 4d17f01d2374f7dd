package refs

import (
	"cmp"
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// space is a namespace, as long as it has names, and the watch of its metadata. The lock of Refs
// guards it.
//
// While that watch is live, it tells which objects change, so a name needs no watch: it is read
// when it was told of (entry.told), up to that version. Names come and go without a gap. When the
// watch goes live, its state tells which objects are newer than the held ones, and only names that
// are up to date give up their own watch. When it ends for good, each name begins a watch of its
// own from the version up to which its state is complete.
type space[T store.Object] struct {
	followed // by the watch of metadata; without a run if each name has its own
	name     string
	source   listwatch.ListerWatcher[T]
	entries  map[*entry[T]]struct{} // its names
	refused  time.Time              // no watch of the namespace is tried before
}

// live reports whether the watch tells of all changes: its state has come.
func (s *space[T]) live() bool { return s.run != nil && !s.run.read.IsZero() }

// end ends the watch of the namespace. The caller holds the lock.
func (s *space[T]) end(cause error) {
	if s.run != nil {
		s.run.End(cause)
		s.followed = followed{}
	}
}

// shared reports whether the watch of the namespace follows the name, or did before it was
// interrupted.
func (e *entry[T]) shared() bool { return e.phase == following && e.run == nil && e.space.run != nil }

// returning: the watch of the namespace has ended, and its first attempt to go on is under way.
func (e *entry[T]) returning() bool {
	return e.shared() && !e.space.live() && e.space.failures == 0 && e.covered >= e.wanted
}

// untold: the watch of the namespace has not told of the object.
const untold = "?"

// agrees reports whether the state is the one that the namespace's watch told last.
func (e *entry[T]) agrees() bool {
	return !e.space.live() || e.told == untold || e.told == versionOf(e.obj)
}

func versionOf[T store.Object](obj T) string {
	if pointer.None(obj) {
		return ""
	}
	return obj.GetResourceVersion()
}

// complete is the version up to which the state is known.
func (e *entry[T]) complete() string {
	if e.shared() && store.Version(e.version).Before(store.Version(e.space.version)) {
		return e.space.version
	}
	return e.version
}

func (e *entry[T]) lastContact() time.Time {
	if e.shared() {
		return e.space.contact
	}
	return e.contact
}

// weigh begins or ends the watch of a namespace by the number of its names. The caller holds the
// lock.
func (r *Refs[T]) weigh(s *space[T]) {
	many := r.options.share
	switch {
	case r.running == nil || many == 0 || r.source.Metadata == nil:
	case s.run == nil && len(s.entries) >= many && time.Now().After(s.refused):
		s.run = r.prepare(0)
		r.pursue(s.run, func(now *run) request { return &sharing[T]{r, s, now, map[*entry[T]]string{}} })
	case s.run != nil && len(s.entries) < (many+1)/2:
		r.part(s, errAlone)
	}
}

// part gives each name a watch of its own. The caller holds the lock.
func (r *Refs[T]) part(s *space[T], cause error) {
	var all []*entry[T]
	for e := range s.entries {
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

// sharing is the request for the watch of a namespace. It is a [stream.Sink].
type sharing[T store.Object] struct {
	refs  *Refs[T]
	s     *space[T]
	run   *run
	heads map[*entry[T]]string // versions of the state; empty: no object
}

func (w *sharing[T]) wanted() bool {
	for e := range w.s.entries {
		w.heads[e] = ""
	}
	return w.s.run == w.run
}

func (w *sharing[T]) read(ctx context.Context) error {
	request := stream.WatchList(w.run.from)
	request.TimeoutSeconds = w.run.ends
	return stream.WatchListTo(ctx, w.refs.source.Metadata(w.s.name), request, w)
}

// Item notes the version of an object of the state, if a name follows it.
func (w *sharing[T]) Item(event listwatch.Event[*metav1.PartialObjectMetadata]) error {
	r := w.refs
	r.mu.Lock()
	defer r.mu.Unlock()
	w.run.Heard(time.Now())
	if e := r.names[types.NamespacedName{Namespace: w.s.name, Name: event.Object.Name}]; e != nil {
		if _, counted := w.heads[e]; counted {
			w.heads[e] = event.ResourceVersion
		}
	}
	return nil
}

// State compares the names with a state of the namespace. What differs is read again, whichever is
// the newer version: etcd may have been restored. Names that came after the request are read again,
// too, if the state may have passed them.
func (w *sharing[T]) State(version string) error {
	r, s, heads := w.refs, w.s, w.heads
	r.leaveTurn(w.run, nil)
	w.heads = nil
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, comparable := store.Version(version).Compare(store.Version(version)); !comparable {
		return errIncomparable
	}
	another := s.back || anotherHistory(heads)
	if err := s.begins(w.run, version, r.options.liveness); err != nil {
		return err
	}
	for e := range s.entries {
		e.doubt = e.doubt || another
		e.told, e.toldAt = untold, version
		if head, counted := heads[e]; counted {
			e.told, e.toldAt = head, cmp.Or(head, version)
		}
		switch {
		case e.phase == following && (another || !e.agrees()):
			r.again(e)
		case e.phase == following:
			_ = r.settle(e)
		case e.phase == kept && another:
			e.phase = idle
		}
		e.signal.Broadcast()
	}
	return nil
}

// anotherHistory reports whether an object has a version that its state had passed already: etcd
// was restored from a backup, and may have passed the version held.
func anotherHistory[T store.Object](heads map[*entry[T]]string) bool {
	for e, head := range heads {
		if e.shared() && head != "" && head != versionOf(e.obj) && store.Version(e.complete()).Reaches(store.Version(head)) {
			return true
		}
	}
	return false
}

// settle leaves a state that has been read to the watch of its namespace, or reads it again if that
// knows more. If it knew more before the request, etcd was restored since, and the watch begins
// anew; until then, the name keeps its own. The caller holds the lock.
func (r *Refs[T]) settle(e *entry[T]) error {
	if store.Version(e.version).Before(store.Version(e.toldAt)) {
		if e.run != nil && e.run.toldAt == e.toldAt {
			e.space.back = true
			e.space.run.End(stream.ErrWentBack)
			return nil
		}
		r.again(e)
		return errAgain
	}
	if e.told == untold {
		e.told = versionOf(e.obj)
	}
	r.leave(e, following, errShared)
	return errShared
}

// Change takes in an event of a namespace.
func (w *sharing[T]) Change(event listwatch.Event[*metav1.PartialObjectMetadata]) error {
	r := w.refs
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := w.s.moves(w.run, event.ResourceVersion, r.options.liveness); err != nil {
		return err
	}
	if event.Type == watch.Bookmark {
		for e := range w.s.entries {
			e.signal.Broadcast() // WaitFor may wait for it
		}
		return nil
	}
	e := r.names[types.NamespacedName{Namespace: w.s.name, Name: event.Object.Name}]
	if e == nil {
		return nil
	}
	if e.told, e.toldAt = event.ResourceVersion, event.ResourceVersion; event.Type == watch.Deleted {
		e.told = ""
	}
	switch {
	// it is being read, or was
	case !e.shared(), e.agrees(), store.Version(e.version).Reaches(store.Version(event.ResourceVersion)):
	case event.Type == watch.Deleted:
		e.version = event.ResourceVersion
		return r.take(e, *new(T))
	case r.unread(e, time.Now()):
		e.phase = idle
	default:
		r.follow(e)
	}
	return nil
}

func (w *sharing[T]) ended(err error) *run {
	r, s := w.refs, w.s
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.run != w.run {
		return nil
	}
	class := reflector.Classify(err)
	clean := s.ends(class)
	delay := pace.Told(err) + pace.Jitter(pace.ResumeSpread)
	switch {
	case clean, r.gate.keeps(class) && w.run.read.IsZero(): // the gate waits for the server
	case ofServer(class), class == reflector.OK, class == reflector.Silent, class == reflector.WentBack,
		class == reflector.TooLarge, class == reflector.Expired, class == reflector.Unplaced:
		s.doubt = true
		delay = s.backoff()
	default:
		s.refused = time.Now().Add(pace.Forbidden)
		r.log.Info("The namespace is not watched: each name has a watch of its own", "namespace", s.name, "class", class, "reason", err.Error())
		r.part(s, errAlone)
		return nil
	}
	for e := range s.entries {
		if e.shared() {
			e.signal.Broadcast()
		}
	}
	s.run = r.prepare(delay)
	if !s.doubt {
		s.run.from = s.version
	}
	return s.run
}

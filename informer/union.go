package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// Union is an informer of several parts of one resource, such as some namespaces or selectors, as
// one collection. It has one store, one set of indexes, one stream of events. Members come and go
// while it runs; each has a reflector, a resource version and a health of its own. Make it with
// [NewUnion]. All methods are safe for concurrent use.
//
//	pods := informer.NewUnion[*corev1.Pod](informer.WithIndexes(byNode))
//	m, err := pods.Add("team-a", listwatch.FromClient[corev1.Pod](client, "pods", listwatch.InNamespace("team-a")))
//	ended := make(chan error, 1)
//	go func() { ended <- pods.Run(ctx) }()
//	…
//	m.Remove() // its objects are told as Deleted
//	…
//	return <-ended // Run's error; nil at the end of ctx
//
// All members must be of one resource of one server, since their versions are compared. Members may
// overlap: the union holds each object once, in the newest version of any member, until no member
// has it. An informer's guarantees hold with these differences:
//
//   - Events are in the server's order within a member, not between members. An object that moves
//     between members may be told as Deleted and Added. No object goes back in time: a late event
//     for an object that another member has deleted is dropped, if that deletion is among the last
//     1024.
//   - A member's list is added object by object. While the union runs, its objects are Added, not
//     Initial.
//   - A handler's initial list is complete once each member at the start is synced or has failed
//     once. So a refused member delays no handler. [Union.WaitSynced] and [Union.Ready] ask for all
//     members, and name those that are not synced or ready.
//   - The snapshot's resource version is one that all members have reached, and the snapshot may
//     have newer objects of some. A watch from it loses no event. It is empty until all members
//     have listed, and goes back if a member is added.
//   - WaitFor returns once the union has the object, or all members have reached its version.
//     WaitForDeletion and WaitForResourceVersion wait for all members. [Member.WaitFor] and
//     [Member.WaitForDeletion] wait for one.
//   - [Informer.Status] aggregates the members; its error is the first failing member's.
//     [Union.Members] has each of them.
//
// With [WithStore] each member packs its own objects. An index with a function decodes each object
// that joins the union, and an object that two members have is decoded to be compared.
//
// A member costs a reflector, and a trie of its objects, which are shared with the store.
type Union[T store.Object] struct {
	*shared[T]
	members *members
}

// NewUnion makes a union without members. Options are an informer's; those of [WithReflector] apply
// to each member's reflector.
func NewUnion[T store.Object](optionList ...Option) *Union[T] {
	i := newShared[T](optionList)
	all := &members{journal: i.newJournal(), over: i.over, synced: make(chan struct{}), lost: newObituaries()}
	all.journal.entries.SetResourceVersion("") // members have their own: see reachedLocked
	i.copier, i.complete, i.resource, i.check = all, all.complete, all.resourceOf, all.verify
	return &Union[T]{i, all}
}

// Run keeps the members' copies until ctx ends, and otherwise is as [Informer.Run]. A member that
// ends by itself ends alone.
func (u *Union[T]) Run(ctx context.Context) error { return u.run(ctx) }

// Add makes source a member under a name of its own, before Run or while it runs. It does not
// block: the source's objects are added as they come. It fails if the name is empty or taken, if
// source is nil, and with [ErrStopped] after the end of Run.
func (u *Union[T]) Add(name string, source listwatch.ListerWatcher[T]) (*Member[T], error) {
	return u.add(&member{name: name}, source)
}

// AddOptional is [Union.Add] for a member that the program can do without, such as a namespace that
// it may have no rights for. Its objects come and go as those of any member, but [Union.Ready],
// [Union.Status], [Union.WaitSynced] and [Union.Synced] do not ask for it. [Union.Members] has its
// health, and [Member.WaitSynced] waits for it.
func (u *Union[T]) AddOptional(name string, source listwatch.ListerWatcher[T]) (*Member[T], error) {
	return u.add(&member{name: name, optional: true}, source)
}

func (u *Union[T]) add(m *member, source listwatch.ListerWatcher[T]) (*Member[T], error) {
	m.union, m.done = u.members, make(chan struct{})
	m.over, m.leave = context.WithCancel(u.over)
	alone := &shared[T]{source: source, objects: u.objects, ring: u.ring, member: m, over: m.over, complete: m.reached}
	m.compare = alone.compare
	err := u.members.add(m, source, func() {
		own := u.newStore()
		m.held = own.Entries()
		m.reflector = u.follow(source, own, m, m.failed)
	})
	if err != nil {
		m.leave()
		return nil, err
	}
	return &Member[T]{m, alone}, nil
}

// Members returns the present health of each member, in the order of their addition. It does not
// block.
func (u *Union[T]) Members() []CopyStatus {
	var all []CopyStatus
	for _, m := range u.members.list() {
		all = append(all, m.Status())
	}
	return all
}

// members are those of a union, of whatever type.
type members struct {
	journal *journal
	over    context.Context // ends with Run
	synced  chan struct{}   // closed once all members are synced

	mu      sync.Mutex // guards the fields below, and writing into the journal
	phase   phase
	start   func(*member) // set while Run runs
	all     []*member
	slowest *member // the one with the union's version; nil without members
	whole   bool    // synced is closed
	// resource is that of the first member that knows it.
	resource string
	lost     *obituaries
	renewed  bool // the history has begun anew
	running  sync.WaitGroup
}

// Run runs the members until ctx ends. A member that ends by itself ends alone.
func (u *members) Run(ctx context.Context) error {
	u.mu.Lock()
	u.phase = running
	u.start = func(m *member) {
		own, stop := context.WithCancel(ctx)
		m.stop = stop
		u.running.Go(func() {
			defer u.journal.ring.moved.Broadcast() // wakes the waits for all members
			defer close(m.done)
			defer stop()
			m.ended = m.reflector.Run(own)
		})
	}
	for _, m := range u.all {
		u.start(m)
	}
	u.settleLocked()
	u.mu.Unlock()
	<-ctx.Done()
	u.mu.Lock()
	u.phase = ended
	u.mu.Unlock()
	u.running.Wait()
	return nil
}

// resourceOf is the resource that all members are of; empty if none of them knows it.
func (u *members) resourceOf() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.resource
}

// add adds a member. begin makes its store, and the reflector that fills it.
func (u *members) add(m *member, source any, begin func()) error {
	switch {
	case m.name == "":
		return errors.New("informer: add a member: give it a name")
	case null.Is(source):
		return fmt.Errorf("informer: add member %q: the source is nil", m.name)
	}
	begin()
	takesNameless(source, m.held, u.journal.entries)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.phase == ended {
		return fmt.Errorf("informer: add member %q: %w", m.name, ErrStopped)
	}
	for _, other := range u.all {
		if other.name == m.name {
			return fmt.Errorf("informer: add member %q: the union has a member of that name: remove it first", m.name)
		}
	}
	u.all = append(u.all, m)
	u.resource = cmp.Or(u.resource, following.Resource(source))
	u.ageLocked()
	if u.phase == running {
		u.start(m)
	}
	return nil
}

func (u *members) list() []*member {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]*member(nil), u.all...)
}

// settleLocked decides whether handlers may begin, and whether all members are synced. It wakes the
// waits for both.
func (u *members) settleLocked() {
	answered, synced := u.phase != idle, u.phase != idle
	for _, m := range u.all {
		answered = answered && (m.listed || m.failedOnce || m.leaving)
		synced = synced && (m.listed || m.leaving || m.optional)
	}
	if answered {
		u.journal.ring.fill()
	}
	if synced && !u.whole {
		u.whole = true
		close(u.synced)
	}
	u.journal.ring.moved.Broadcast()
}

// putLocked stores an object of a member that is complete up to a version, unless the union knows a
// newer state. What the union knows of earlier versions, and the member has not, has never been.
func (u *members) putLocked(obj store.Entry, complete store.Version, missed bool) error {
	key := store.KeyOf(obj)
	held, ok := u.journal.entries.Get(key)
	switch {
	case !ok && u.lost.covers(key, store.VersionOf(obj), complete),
		ok && store.VersionOf(obj).Before(store.VersionOf(held)) && !complete.Reaches(store.VersionOf(held)):
		return nil
	}
	return u.journal.put(obj, missed)
}

// renewLocked makes the union what its members have, each object in the newest state of them. It is
// for a history that begins anew: what the union knew beside that is of another one.
func (u *members) renewLocked() error {
	u.renewed, u.lost = true, newObituaries()
	newest := map[string]store.Entry{}
	for _, m := range u.all {
		for key, obj := range m.held.Snapshot().All() {
			if other, ok := newest[key]; !m.leaving && (!ok || store.VersionOf(other).Before(store.VersionOf(obj))) {
				newest[key] = obj
			}
		}
	}
	var errs []error
	for key, held := range u.journal.entries.Snapshot().All() {
		if _, ok := newest[key]; !ok {
			errs = append(errs, u.journal.drop(held, true))
		}
	}
	for _, obj := range newest {
		errs = append(errs, u.journal.put(obj, true))
	}
	return errors.Join(errs...)
}

// dropLocked handles a member's loss of last; final is the final state if the server sent one. It
// keeps an object that another member has, and another object under the key. A list, up to whose
// version the member is complete, has no final state.
func (u *members) dropLocked(from *member, last, final store.Entry, missed bool) error {
	key := store.KeyOf(last)
	held, ok := u.journal.entries.Get(key)
	if !ok {
		return nil
	}
	kept := false
	for _, m := range u.all {
		if also, has := m.held.Get(key); has && !(m == from && m.leaving) && also.GetUID() == held.GetUID() {
			if err := u.putLocked(also, m.version, missed); err != nil {
				return err
			}
			kept = true
		}
	}
	if kept {
		return nil
	}
	if final != nil && final.GetUID() == held.GetUID() && !store.VersionOf(final).Before(store.VersionOf(held)) {
		u.lost.note(key, obituary{version: store.VersionOf(final), known: store.VersionOf(final)})
		return u.journal.delete(final)
	}
	// A list without the object proves a later version of the member's state, so that state is
	// over, too. An object that leaves with its member lives on elsewhere.
	over := final == nil && missed && held.GetResourceVersion() == last.GetResourceVersion()
	known := from.complete()
	if known.Before(store.VersionOf(held)) { // the state of another member, which was further
		known = store.VersionOf(held)
	}
	u.lost.note(key, obituary{version: store.VersionOf(held), inclusive: over, known: known})
	return u.journal.drop(held, missed)
}

// complete returns the version that all members have reached, and the name of the slowest.
func (u *members) complete() (resourceVersion, owner string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.slowest == nil {
		return "", "the union"
	}
	return string(u.slowest.version), fmt.Sprintf("member %q", u.slowest.name)
}

// ageLocked finds the slowest member, and gives the store its version. A member that is leaving
// counts until its objects are gone: they are as old as it is.
func (u *members) ageLocked() {
	u.slowest = nil
	var version store.Version
	for _, m := range u.all {
		if m.optional && !m.listed {
			continue // it may never be
		}
		if u.slowest == nil || m.version == "" || m.version.Before(version) {
			u.slowest, version = m, m.version
		}
		if version == "" {
			break
		}
	}
	u.journal.entries.SetResourceVersion(string(version))
}

func (u *members) Synced() <-chan struct{} { return u.synced }

// WaitSynced blocks until all present members that are not optional are synced, or one of them has
// ended by itself.
func (u *members) WaitSynced(ctx context.Context) error {
	var err error
	synced := u.journal.ring.moved.Until(ctx.Done(), func() (synced bool) {
		synced, err = u.areSynced()
		return synced || err != nil
	})
	if err != nil {
		return err
	}
	for _, m := range u.required() {
		if err := m.WaitSynced(ctx); err != nil && !errors.Is(err, errRemoved) {
			return err // names the member
		}
	}
	if !synced {
		return fmt.Errorf("informer: union: not synced: %w", context.Cause(ctx))
	}
	return nil
}

// areSynced reports whether all members have been synced at once, and are now. The error is that of
// a member that has ended by itself.
func (u *members) areSynced() (synced bool, err error) {
	select {
	case <-u.synced:
		synced = true
	default:
	}
	for _, m := range u.required() {
		has, err := m.synced()
		if err != nil && !errors.Is(err, errRemoved) {
			return false, err
		}
		synced = synced && (has || err != nil)
	}
	return synced, nil
}

// required are the members that are not optional.
func (u *members) required() []*member {
	return slices.DeleteFunc(u.list(), func(m *member) bool { return m.optional })
}

func (u *members) isEmpty() bool { return len(u.list()) == 0 }

// Status aggregates the members; it is healthy only if all of them are that are not optional.
// Without such members, it is at each moment what it is to be: empty. Its verdict is
// [Status.Verdict]'s.
func (u *members) Status() reflector.Status {
	all := u.required()
	if len(all) == 0 {
		return reflector.Status{Phase: reflector.Watching, Synced: true, Class: reflector.OK, ProvenAt: time.Now()}
	}
	sum := reflector.Sum(func(yield func(string, reflector.Status) bool) {
		for _, m := range all {
			if !yield(m.name, m.reflector.Status()) {
				return
			}
		}
	})
	sum.ResourceVersion, _ = u.complete()
	return sum
}

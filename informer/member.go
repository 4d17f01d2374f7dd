package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// Member is one part of a [Union]. [Union.Add] makes it. Its methods are safe for concurrent use.
type Member[T store.Object] struct {
	*member
	alone *shared[T] // the union's store, complete up to the member's version; for the waits only
}

// WaitFor is [Informer.WaitFor] for an object of this member: the other members may lag behind. It
// fails with [ErrStopped] if the member is removed.
func (m *Member[T]) WaitFor(ctx context.Context, obj T) error { return m.alone.WaitFor(ctx, obj) }

// WaitForDeletion is [Informer.WaitForDeletion] for an object of this member: the other members may
// lag behind. It fails with [ErrStopped] if the member is removed. If members overlap, use the
// union's: another member may have the object.
func (m *Member[T]) WaitForDeletion(ctx context.Context, obj T) error {
	return m.alone.WaitForDeletion(ctx, obj)
}

// member is a part of a union, of whatever type. It is the [writer] of its reflector: it keeps its
// objects, and passes each change on to the union.
type member struct {
	name      string
	optional  bool
	union     *members
	reflector copier
	held      *store.Entries  // the member's objects; written under the union's lock, lists apart
	done      chan struct{}   // closed when its reflector has ended
	ended     error           // its reflector's error, once done is closed
	over      context.Context // ends with the union's Run, and when it is removed
	removal   sync.Once
	another   bool // the list under way is of another history; its reflector's goroutine has it
	leave     context.CancelFunc

	// compare compares the union's store with the member's source.
	compare func(context.Context) (Drift, error)

	// Guarded by the union's lock.
	stop       context.CancelFunc // nil before its start
	listed     bool               // the store has a whole list of this member
	version    store.Version      // the version up to which the store has its changes
	failedOnce bool
	leaving    bool
}

// Name returns the name given to [Union.Add].
func (m *member) Name() string { return m.name }

// Status returns the member's present health. It does not block.
func (m *member) Status() CopyStatus {
	held := Status{Status: m.reflector.Status(), Objects: m.held.Snapshot().Len()}
	if cause := context.Cause(m.union.over); cause != nil && held.Phase == reflector.Idle {
		held.Status = held.Status.Ended(cause, time.Now()) // the member was never begun
	}
	return CopyStatus{Name: m.name, Optional: m.optional, Status: held}
}

// WaitSynced blocks until the store has all objects of the member. If ctx ends first, it fails and
// gives the cause. It fails at once if the member's reflector ends, with its error, and if the
// member is removed.
func (m *member) WaitSynced(ctx context.Context) (err error) {
	synced := false
	if !m.union.journal.ring.moved.Until(ctx.Done(), func() bool {
		synced, err = m.synced()
		return synced || err != nil
	}) {
		return fmt.Errorf("informer: member %q: %w", m.name, m.reflector.WaitSynced(ctx))
	}
	if synced {
		m.awaitStatus(ctx)
	}
	return err
}

// synced reports whether the store has all objects of the member. The error says why it never will.
func (m *member) synced() (synced bool, err error) {
	m.union.mu.Lock()
	synced, leaving := m.listed, m.leaving
	m.union.mu.Unlock()
	switch {
	case leaving:
		return false, fmt.Errorf("informer: member %q: not synced: %w", m.name, errRemoved)
	case synced:
		return true, nil
	}
	select {
	case <-m.done:
		return false, fmt.Errorf("informer: member %q: not synced: %w", m.name, cmp.Or(m.ended, ErrStopped))
	default:
		return false, nil
	}
}

// awaitStatus waits until the member's status says that it is synced. The store says so a moment
// earlier.
func (m *member) awaitStatus(ctx context.Context) {
	select {
	case <-m.reflector.Synced():
	case <-m.done:
	case <-ctx.Done():
	}
}

// complete is the version up to which the member's own store is complete.
func (m *member) complete() store.Version { return store.Version(m.held.ResourceVersion()) }

// reached returns the version up to which the union's store has the member's changes.
func (m *member) reached() (resourceVersion, owner string) {
	m.union.mu.Lock()
	defer m.union.mu.Unlock()
	return string(m.version), fmt.Sprintf("member %q", m.name)
}

var errRemoved = errors.New("it was removed")

// Remove ends the member's watch, and removes the objects that no other member has. Each is told as
// Deleted, in its last state in the store. Remove blocks until the store is done, but not for
// handlers. It may be called more than once.
func (m *member) Remove() { m.removal.Do(m.remove) }

func (m *member) remove() {
	u := m.union
	u.mu.Lock()
	m.leaving = true
	m.leave()
	stop := m.stop
	if stop == nil { // Run has not started it, and will not
		u.forgetLocked(m)
	}
	u.mu.Unlock()
	if stop != nil {
		stop()
		<-m.done
		u.mu.Lock()
		u.forgetLocked(m)
		u.mu.Unlock()
	}
}

func (u *members) forgetLocked(m *member) {
	for _, obj := range m.held.Snapshot().All() {
		_ = u.dropLocked(m, obj, nil, false) // cannot fail: the store has held the object
	}
	if u.renewed { // it may have been of another history than those that stay
		_ = u.renewLocked()
	}
	u.all = slices.DeleteFunc(u.all, func(other *member) bool { return other == m })
	u.ageLocked()
	u.settleLocked()
}

// failed notes that the member has had a first answer, if a bad one, so that handlers do not wait
// for it.
func (m *member) failed() {
	m.union.mu.Lock()
	defer m.union.mu.Unlock()
	if !m.failedOnce {
		m.failedOnce = true
		m.union.settleLocked()
	}
}

func (m *member) anotherHistory() { m.another = true }

// put makes the entry of an object, which may take long, before it locks the union.
func (m *member) put(obj store.Entry, missed bool) error {
	entry, err := m.held.Entry(obj)
	if err != nil {
		return err
	}
	m.union.mu.Lock()
	defer m.union.mu.Unlock()
	c, err := m.held.Put(entry)
	if err != nil {
		return err
	}
	err = m.union.putLocked(c.New, m.complete(), missed)
	m.reachedLocked()
	return err
}

func (m *member) delete(obj store.Entry) error {
	last, err := m.held.Entry(obj)
	if err != nil {
		return err
	}
	m.union.mu.Lock()
	defer m.union.mu.Unlock()
	c, err := m.held.Remove(last)
	if err != nil {
		return err
	}
	if c.Deleted() {
		err = m.union.dropLocked(m, c.Old, last, true)
	}
	m.reachedLocked()
	return err
}

// replace does not lock the union while it reads the list.
func (m *member) replace(items iter.Seq2[store.Entry, error], resourceVersion func() string) error {
	m.another = false
	before := m.held.Snapshot()
	if err := m.held.Replace(items, resourceVersion); err != nil {
		return err
	}
	u := m.union
	u.mu.Lock()
	defer u.mu.Unlock()
	var errs []error
	if m.another {
		errs = append(errs, m.beginAnewLocked())
	} else {
		for c := range store.Diff(before, m.held.Snapshot()) {
			errs = append(errs, m.tellLocked(c))
		}
	}
	m.listed = true
	m.reachedLocked()
	u.settleLocked()
	return errors.Join(errs...)
}

// tellLocked tells the union of a difference that a list has brought.
func (m *member) tellLocked(c store.Change[store.Entry]) error {
	if c.Deleted() {
		return m.union.dropLocked(m, c.Old, nil, true)
	}
	return m.union.putLocked(c.New, m.complete(), m.listed)
}

// beginAnewLocked takes in a list of another history. A member that is further than the list may
// not have noticed yet: its version counts again when it has told the next.
func (m *member) beginAnewLocked() error {
	u := m.union
	for _, other := range u.all {
		if m.complete().Before(other.version) {
			other.version = ""
		}
	}
	u.ageLocked()
	return u.renewLocked()
}

func (m *member) bookmark(resourceVersion string) error {
	m.union.mu.Lock()
	defer m.union.mu.Unlock()
	err := m.held.Bookmark(resourceVersion)
	m.reachedLocked()
	return err
}

// reachedLocked notes the member's version. The union's store must have the change before, since it
// then states that version, if no member is slower.
func (m *member) reachedLocked() {
	u := m.union
	m.version = m.complete()
	if u.slowest == nil || m == u.slowest || !u.slowest.version.Before(m.version) {
		u.ageLocked() // asks all members, so it is not done for each event
	}
	u.journal.ring.moved.Broadcast()
}

// observed reports the failures of a source, if failed is not nil. A watch list that a LIST follows
// at once is none.
func observed[T store.Object](source listwatch.ListerWatcher[T], failed func()) listwatch.ListerWatcher[T] {
	if failed == nil {
		return source
	}
	return listwatch.Intercept(source,
		func(_ metav1.ListOptions, list listwatch.List[T]) listwatch.List[T] {
			list.Items = observe(list.Items, func(error) { failed() })
			return list
		},
		func(request metav1.ListOptions, events iter.Seq2[listwatch.Event[T], error]) iter.Seq2[listwatch.Event[T], error] {
			return observe(events, func(err error) {
				if request.SendInitialEvents == nil || !watchlist.ThenList(err) {
					failed()
				}
			})
		})
}

func observe[V any](values iter.Seq2[V, error], failed func(error)) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for v, err := range values {
			var unusable *listwatch.DecodeError
			if err != nil && !errors.As(err, &unusable) {
				failed(err)
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// obituaries are the last deletions in a union, so that a slow member revives no deleted object.
// Not safe for concurrent use.
type obituaries struct {
	byKey map[string]obituary
	order []string // keys; the oldest is at next
	next  int
}

type obituary struct {
	version   store.Version
	inclusive bool          // the state at this version is over, too
	known     store.Version // at which the object was known to be gone
	at        int           // its index in order
}

// maxObituaries equals the default size of a ring: a member that is further behind is stale anyway.
const maxObituaries = 1024

func newObituaries() *obituaries {
	return &obituaries{byKey: map[string]obituary{}, order: make([]string, maxObituaries)}
}

func (o *obituaries) note(key string, end obituary) {
	if evicted := o.order[o.next]; o.byKey[evicted].at == o.next {
		delete(o.byKey, evicted)
	}
	o.order[o.next] = key
	end.at = o.next
	o.byKey[key] = end
	o.next = (o.next + 1) % len(o.order)
}

// covers reports whether a state of the object under key is from before its deletion. A member that
// has it, and is complete up to a version at which it was gone, is of another history.
func (o *obituaries) covers(key string, version, complete store.Version) bool {
	end, ok := o.byKey[key]
	if !ok || end.known != "" && complete.Reaches(end.known) {
		return false
	}
	return version.Before(end.version) || end.inclusive && version == end.version
}

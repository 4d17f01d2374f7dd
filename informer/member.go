package informer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// Member is one part of a [Union]. [Union.Add] makes it. Its methods are safe for concurrent use.
type Member[T store.Object] struct {
	name      string
	union     *members[T]
	reflector *reflector.Reflector[T]
	held      store.Indexer[T] // what the member has; written by its reflector, under the union's lock but for a list
	done      chan struct{}    // closed when its reflector has ended
	ended     error            // what its reflector's Run returned, once done is closed
	gone      chan struct{}    // closed when it is no member any more

	// Guarded by the union's lock.
	stop       context.CancelFunc // nil until it was started
	listed     bool               // the store has a whole list of the member's
	version    string             // up to which the store has the member's changes
	failedOnce bool
	leaving    bool
}

// Name is the name that it was added under.
func (m *Member[T]) Name() string { return m.name }

// Status is its health now. It does not block.
func (m *Member[T]) Status() MemberStatus {
	return MemberStatus{Name: m.name, Objects: m.held.Snapshot().Len(), Status: m.reflector.Status()}
}

// WaitSynced blocks until all that the member has is in the store. It fails when ctx ends before that, and says what stood
// in the way; at once with the error with which the member's reflector has ended; and when the member is removed.
func (m *Member[T]) WaitSynced(ctx context.Context) error {
	for {
		changed := m.union.journal.ring.changed.Wait()
		m.union.mu.Lock()
		synced, leaving := m.listed, m.leaving
		m.union.mu.Unlock()
		switch {
		case leaving:
			return fmt.Errorf("informer: member %q: not synced: %w", m.name, errRemoved)
		case synced:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("informer: member %q: %w", m.name, m.reflector.WaitSynced(ctx))
		case <-m.done:
			if err := m.hasEnded(); err != nil {
				return err
			}
		}
	}
}

func (m *Member[T]) isSynced() bool {
	m.union.mu.Lock()
	defer m.union.mu.Unlock()
	return m.listed || m.leaving
}

// hasEnded is why a member that has ended, and was neither synced nor removed before, will not be synced.
func (m *Member[T]) hasEnded() error {
	select {
	case <-m.done:
	default:
		return nil
	}
	if m.isSynced() {
		return nil
	}
	if m.ended != nil {
		return fmt.Errorf("informer: member %q: not synced: %w", m.name, m.ended)
	}
	return fmt.Errorf("informer: member %q: not synced: %w", m.name, ErrStopped)
}

var errRemoved = errors.New("it was removed")

// Remove ends the member's watch and takes from the store what no other member has, each object told as Deleted in the
// state in which it was there. It blocks until that is done, not until handlers have been told. It may be called more
// than once.
func (m *Member[T]) Remove() {
	u := m.union
	u.mu.Lock()
	if m.leaving {
		u.mu.Unlock()
		<-m.gone
		return
	}
	m.leaving = true
	stop := m.stop
	if stop == nil { // Run has not come to it, and will not
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
	close(m.gone)
}

func (u *members[T]) forgetLocked(m *Member[T]) {
	var none T
	for _, obj := range m.held.Snapshot().All() {
		_ = u.dropLocked(m, obj, none, false) // it has a name, so that nothing can fail
	}
	u.all = slices.DeleteFunc(u.all, func(other *Member[T]) bool { return other == m })
	u.settleLocked()
}

// failed notes that the member has had an answer, if a bad one, so that handlers need not wait for it.
func (m *Member[T]) failed() {
	m.union.mu.Lock()
	defer m.union.mu.Unlock()
	if !m.failedOnce {
		m.failedOnce = true
		m.union.settleLocked()
	}
}

// part is the store that a member's reflector writes into: it keeps what the member has, and passes on what that means for
// the union.
type part[T store.Object] struct{ *Member[T] }

// Snapshot is what the member has, for a source that does not decode that again.
func (p *part[T]) Snapshot() store.Snapshot[T] { return p.held.Snapshot() }

func (p *part[T]) Add(obj T) error    { return p.put(obj) }
func (p *part[T]) Update(obj T) error { return p.put(obj) }

func (p *part[T]) put(obj T) error {
	p.union.mu.Lock()
	defer p.union.mu.Unlock()
	c, err := p.held.Put(obj)
	if err != nil {
		return err
	}
	err = p.union.putLocked(c.New, false)
	p.reachedLocked()
	return err
}

func (p *part[T]) Delete(obj T) error {
	p.union.mu.Lock()
	defer p.union.mu.Unlock()
	c, err := p.held.Remove(obj)
	if err != nil {
		return err
	}
	if c.Deleted() {
		err = p.union.dropLocked(p.Member, c.Old, obj, true)
	}
	p.reachedLocked()
	return err
}

// Replace lets others write while the list is read.
func (p *part[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	before := p.held.Snapshot()
	if err := p.held.Replace(items, resourceVersion); err != nil {
		return err
	}
	u := p.union
	u.mu.Lock()
	defer u.mu.Unlock()
	missed := p.listed
	var errs []error
	for c := range store.Diff(before, p.held.Snapshot()) {
		var err error
		if c.Deleted() {
			var none T
			err = u.dropLocked(p.Member, c.Old, none, true)
		} else {
			err = u.putLocked(c.New, missed)
		}
		errs = append(errs, err)
	}
	p.listed = true
	p.reachedLocked()
	u.settleLocked()
	return errors.Join(errs...)
}

func (p *part[T]) Bookmark(resourceVersion string) error {
	p.union.mu.Lock()
	defer p.union.mu.Unlock()
	err := p.held.Bookmark(resourceVersion)
	p.reachedLocked()
	return err
}

// reachedLocked notes that the union has what the member has. The union was told first: what complete says of it is true.
func (p *part[T]) reachedLocked() {
	p.version = p.held.Snapshot().ResourceVersion()
	p.union.journal.ring.changed.Broadcast()
}

// observed is a source that tells of its failures.
type observed[T store.Object] struct {
	from   listwatch.ListerWatcher[T]
	failed func()
}

// IsWatchListSemanticsUnSupported is what the source says.
func (o observed[T]) IsWatchListSemanticsUnSupported() bool {
	refuses, ok := o.from.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok && refuses.IsWatchListSemanticsUnSupported()
}

// Holding passes on what the member has, to a source that asks for it.
func (o observed[T]) Holding(held func(key string) (T, bool)) listwatch.ListerWatcher[T] {
	if holder, ok := o.from.(interface {
		Holding(func(key string) (T, bool)) listwatch.ListerWatcher[T]
	}); ok {
		o.from = holder.Holding(held)
	}
	return o
}

func (o observed[T]) List(ctx context.Context, options metav1.ListOptions) listwatch.List[T] {
	list := o.from.List(ctx, options)
	return listwatch.List[T]{Meta: list.Meta, Items: observe(list.Items, o.failed)}
}

func (o observed[T]) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[listwatch.Event[T], error] {
	return observe(o.from.Watch(ctx, options), o.failed)
}

func observe[V any](values iter.Seq2[V, error], failed func()) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for v, err := range values {
			var unusable *listwatch.DecodeError
			if err != nil && !errors.As(err, &unusable) {
				failed()
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// older reports whether version a is certainly older than b.
func older(a, b string) bool {
	order, _ := store.CompareVersions(a, b)
	return order < 0
}

// obituaries are the last ends of objects in a union, so that a slow member does not bring them back to life. Not safe for
// concurrent use.
type obituaries struct {
	byKey map[string]obituary
	order []string // of keys, the oldest at next
	next  int
}

type obituary struct {
	resourceVersion string
	inclusive       bool // that very state is over, too
	at              int  // its place in order
}

// maxObituaries is how many ends are remembered, as many as the changes in a ring: a member that is further behind has no
// part in what is going on.
const maxObituaries = 1024

func newObituaries() *obituaries {
	return &obituaries{byKey: map[string]obituary{}, order: make([]string, maxObituaries)}
}

func (o *obituaries) note(key, resourceVersion string, inclusive bool) {
	if evicted := o.order[o.next]; o.byKey[evicted].at == o.next {
		delete(o.byKey, evicted)
	}
	o.order[o.next] = key
	o.byKey[key] = obituary{resourceVersion, inclusive, o.next}
	o.next = (o.next + 1) % len(o.order)
}

// covers reports whether a state of the object under key is from before its end.
func (o *obituaries) covers(key, resourceVersion string) bool {
	end, ok := o.byKey[key]
	return ok && (older(resourceVersion, end.resourceVersion) || end.inclusive && resourceVersion == end.resourceVersion)
}

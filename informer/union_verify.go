package informer

import (
	"context"
	"fmt"
	"time"

	"github.com/tributary-go/tributary/store"
)

// Verify compares the union with the source of each member, one after the other, as
// [Informer.Verify] does. A member that differs lists again, and the union is made anew of what its
// members have. ResourceVersion is empty: members have versions of their own. Objects counts an
// object for each member that has it. A member that is optional, and not synced, is left out.
func (u *Union[T]) Verify(ctx context.Context) (Drift, error) { return u.verifyAndNote(ctx) }

func (u *members[E]) verify(ctx context.Context) (Drift, error) {
	sum := Drift{At: time.Now()}
	before := u.orphans()
	all := u.list()
	for _, m := range all {
		if m.optional && !m.isSynced() {
			continue
		}
		d, err := m.verify(ctx)
		if m.over.Err() != nil && u.over.Err() == nil {
			continue // it was removed
		}
		if err != nil {
			return sum, fmt.Errorf("informer: verify: member %q: %w", m.name, err)
		}
		sum.Objects += d.Objects
		sum.Count += d.Count
		sum.Differences = append(sum.Differences, d.Differences[:min(len(d.Differences), maxDifferences-len(sum.Differences))]...)
		if d.Count > 0 {
			m.reflector.Doubt(d.reason())
		}
	}
	if len(all) == 0 {
		return sum, fmt.Errorf("informer: verify: %w", errNoMembers)
	}
	for key, version := range u.orphans() {
		if before[key] == version {
			sum.differ(Difference{Key: key, Store: version})
		}
	}
	return sum, nil
}

func (m *member[E]) verify(ctx context.Context) (Drift, error) {
	if err := m.WaitSynced(ctx); err != nil {
		return Drift{}, err
	}
	return m.compare(ctx)
}

// orphans are the objects that the union has and no member: for a moment they may be, while a
// member reads a list.
func (u *members[E]) orphans() map[string]string {
	found := map[string]string{}
	all := u.list()
	for key, version := range u.journal.versions().all {
		has := false
		for _, m := range all {
			if _, has = m.held.Get(key); has {
				break
			}
		}
		if !has {
			found[key] = version
		}
	}
	return found
}

// Doubt makes the union what its members have.
func (u *members[E]) Doubt(error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	_ = u.renewLocked() // cannot fail: the stores of the members have held the objects
	u.wrote()
}

// aloneOf is the union's store as far as it is one member's.
type aloneOf[T, E store.Object] struct {
	kept[T]
	member *member[E]
}

func (a aloneOf[T, E]) versions() versions {
	at, _ := a.member.reached()
	v := a.kept.versions()
	all := v.all
	v.at = store.Version(at)
	v.all = func(yield func(key, resourceVersion string) bool) {
		for key, version := range all {
			if _, ok := a.member.held.Get(key); ok && !yield(key, version) {
				return
			}
		}
	}
	return v
}

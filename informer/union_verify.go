package informer

import (
	"context"
	"fmt"
	"time"
)

// Verify compares the union with the source of each member, one after the other, as
// [Informer.Verify] does. A member that differs lists again, and the union is made anew of what its
// members have. ResourceVersion is empty: members have versions of their own. Objects counts an
// object for each member that has it. A member that is optional, and not synced, is left out.
func (u *Union[T]) Verify(ctx context.Context) (Drift, error) { return u.verifyAndNote(ctx) }

func (u *members) verify(ctx context.Context) (Drift, error) {
	sum := Drift{At: time.Now()}
	before := u.orphans()
	all := u.list()
	for _, m := range all {
		if synced, _ := m.synced(); m.optional && !synced {
			continue
		}
		var d Drift
		err := m.WaitSynced(ctx)
		if err == nil {
			d, err = m.compare(ctx)
		}
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

// orphans are the objects that the union has and no member: for a moment they may be, while a
// member reads a list.
func (u *members) orphans() map[string]string {
	found := map[string]string{}
	for key, entry := range u.journal.entries.Snapshot().All() {
		found[key] = entry.GetResourceVersion()
	}
	for _, m := range u.list() {
		for key := range m.held.Snapshot().Keys() {
			delete(found, key)
		}
	}
	return found
}

// Doubt makes the union what its members have.
func (u *members) Doubt(error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	_ = u.renewLocked() // cannot fail: the stores of the members have held the objects
	u.journal.ring.moved.Broadcast()
}

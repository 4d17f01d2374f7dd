package informer

import (
	"context"
	"fmt"
)

// WaitFor is [Informer.WaitFor] for an object of this member: the other members may lag behind. It
// fails with [ErrStopped] if the member is removed.
func (m *Member[T]) WaitFor(ctx context.Context, obj T) error { return m.alone().WaitFor(ctx, obj) }

// WaitForDeletion is [Informer.WaitForDeletion] for an object of this member: the other members may
// lag behind. It fails with [ErrStopped] if the member is removed. If members overlap, use the
// union's: another member may have the object.
func (m *Member[T]) WaitForDeletion(ctx context.Context, obj T) error {
	return m.alone().WaitForDeletion(ctx, obj)
}

// alone is the union's store, complete up to the member's version. Only the waits may be called.
func (m *Member[T]) alone() *shared[T] {
	return &shared[T]{kept: m.union.journal, ring: m.union.journal.ring, over: m.over, complete: func() (string, string) {
		m.union.mu.Lock()
		defer m.union.mu.Unlock()
		return m.version, fmt.Sprintf("member %q", m.name)
	}}
}

// Package ring keeps the newest elements of a sequence under numbers that never repeat, so that a
// reader's position is one number. Watch caches keep their last changes in a ring.
package ring

import (
	"math/bits"
	"sync/atomic"
)

// Shared is a ring without a capacity of its own: it grows with additions, shrinks as elements are
// dropped, and is read without a lock. One goroutine at a time may write. Make one with
// [NewShared].
type Shared[E any] struct {
	// Readers load next, then slots, then the slot, then first: a position between the two was in
	// the slots that they have seen.
	//
	// Element n is in slot n % len(slots), a power of two.
	slots atomic.Pointer[[]atomic.Pointer[E]]
	// The numbers of the oldest element held, and of the next to come.
	first, next atomic.Uint64
}

// fewSlots is the room of an empty ring.
const fewSlots = 64

// NewShared makes an empty ring.
func NewShared[E any]() *Shared[E] {
	r := &Shared[E]{}
	slots := make([]atomic.Pointer[E], fewSlots)
	r.slots.Store(&slots)
	return r
}

// First is the number of the oldest element held; it equals Next if the ring is empty.
func (r *Shared[E]) First() uint64 { return r.first.Load() }

// Next is the number that the next element will get.
func (r *Shared[E]) Next() uint64 { return r.next.Load() }

// Len is how many elements are held. It is for the writer.
func (r *Shared[E]) Len() int { return int(r.next.Load() - r.first.Load()) }

// At is the element with a number from First to Next-1. It is for the writer, and for readers that
// keep the writer away.
func (r *Shared[E]) At(number uint64) *E { return r.slot(number).Load() }

func (r *Shared[E]) slot(number uint64) *atomic.Pointer[E] {
	slots := *r.slots.Load()
	return &slots[number&uint64(len(slots)-1)]
}

// Read returns the element at a position, or nil if it is still to come; ok is false if the element
// has been dropped. Any number of goroutines may read beside the writer.
func (r *Shared[E]) Read(position uint64) (e *E, ok bool) {
	if position < r.next.Load() {
		e = r.slot(position).Load()
	}
	if position < r.first.Load() {
		return nil, false
	}
	return e, true
}

// Add appends an element.
func (r *Shared[E]) Add(e *E) {
	if r.Len() == len(*r.slots.Load()) {
		r.resize(2 * r.Len())
	}
	next := r.next.Load()
	r.slot(next).Store(e)
	r.next.Store(next + 1)
}

// Drop forgets the oldest element, and returns it. The ring must not be empty.
func (r *Shared[E]) Drop() *E {
	first := r.first.Load()
	slot := r.slot(first)
	e := slot.Load()
	r.first.Store(first + 1)
	slot.Store(nil)
	if slots := len(*r.slots.Load()); slots > fewSlots && r.Len() <= slots/4 {
		r.resize(slots / 2)
	}
	return e
}

// Skip lets count numbers have no element. The ring must be empty.
func (r *Shared[E]) Skip(count uint64) {
	next := r.next.Load() + count
	r.first.Store(next)
	r.next.Store(next)
}

func (r *Shared[E]) resize(capacity int) {
	slots := make([]atomic.Pointer[E], 1<<bits.Len(uint(capacity-1)))
	for n := r.first.Load(); n < r.next.Load(); n++ {
		slots[n&uint64(len(slots)-1)].Store(r.At(n))
	}
	r.slots.Store(&slots)
}

// Package ring keeps the newest elements of a sequence under numbers that never repeat, so that a
// reader's position is one number. Informers and watch caches keep their last changes in one.
package ring

// Ring holds the newest elements, oldest first. Make one with [New]. It is not safe for concurrent
// use.
type Ring[E any] struct {
	slots       []E    // element n is in slot n % len(slots)
	first, next uint64 // the numbers of the oldest element held, and of the next element to come
}

// New makes an empty ring that holds up to capacity elements, at least one.
func New[E any](capacity int) Ring[E] { return Ring[E]{slots: make([]E, capacity)} }

// First is the number of the oldest element held; it equals Next if the ring is empty.
func (r *Ring[E]) First() uint64 { return r.first }

// Next is the number that the next element will get.
func (r *Ring[E]) Next() uint64 { return r.next }

// Cap is how many elements the ring holds at most.
func (r *Ring[E]) Cap() int { return len(r.slots) }

// Full reports whether the next Add takes the place of the oldest element.
func (r *Ring[E]) Full() bool { return r.next-r.first == uint64(len(r.slots)) }

// At is the element with a number from First to Next-1.
func (r *Ring[E]) At(number uint64) E { return r.slots[number%uint64(len(r.slots))] }

// Slot is the place of that element, for changing it.
func (r *Ring[E]) Slot(number uint64) *E { return &r.slots[number%uint64(len(r.slots))] }

// Add appends an element, over the oldest one if the ring is full.
func (r *Ring[E]) Add(e E) {
	if r.Full() {
		r.first++
	}
	r.slots[r.next%uint64(len(r.slots))] = e
	r.next++
}

// Skip forgets all elements, and count numbers that will never have one.
func (r *Ring[E]) Skip(count uint64) {
	clear(r.slots)
	r.next += count
	r.first = r.next
}

// Read appends at most limit elements from position on to into. It appends nothing, and reports
// false, if the element at position is gone.
func (r *Ring[E]) Read(position uint64, limit int, into []E) (_ []E, ok bool) {
	if position < r.first {
		return into, false
	}
	end := min(r.next, position+uint64(limit))
	if position >= end {
		return into, true
	}
	capacity := uint64(len(r.slots))
	from, to := position%capacity, (end-1)%capacity+1
	if from < to {
		return append(into, r.slots[from:to]...), true
	}
	return append(append(into, r.slots[from:]...), r.slots[:to]...), true
}

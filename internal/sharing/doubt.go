package sharing

import "reflect"

// Values are read-only, and readers that write into them against the rule do exist. So a reader
// that lists again doubts them: what was decoded before is decoded once more before it is handed
// out, and compared. A value that is whole stays shared with the objects that have it. One that is
// not is replaced, so that no write of a reader gets into an object that is decoded after the next
// list.
//
// The digests of held objects (listwatch) cannot do this. They choose held objects to decode though
// their bytes are known, and Doubt makes that decoding right. Most values belong to objects that
// the digests do not choose. Without Doubt, TestAWriteIntoAHeldObjectIsHealed and
// TestNoWriteOutlivesARelist fail.

// Doubt makes every value be compared with its bytes before it is handed out again. That costs one
// decoding for each value that comes again.
func (m *Memo) Doubt() {
	m.doubts.Add(1)
	c := &m.noted
	c.mu.Lock()
	defer c.mu.Unlock()
	c.young, c.old, c.bytes = nil, nil, 0
}

// forgetPrevious lets go of the previous objects. The habits of their places stay.
func (d *decoder) forgetPrevious() {
	d.forgetRecent()
	for _, b := range d.previous {
		b.set(reflect.Value{}, nil, false)
	}
}

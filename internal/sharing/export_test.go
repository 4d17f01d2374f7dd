package sharing

import "math"

// DropManagedFields is [Kind.Drop]. Call it before the first object is decoded.
func (m *Memo) DropManagedFields() { m.drop = true }

// Another is the memo of another collection of the kind.
func (m *Memo) Another() *Memo { return m.join() }

// NeverRest makes a memo follow the smallest objects, and go on whether it finds anything or not.
func (m *Memo) NeverRest() { m.limits.follow, m.limits.share = 0, 0 }

// GiveUp makes a memo leave objects to the generated code, once it has seen enough of them.
func (m *Memo) GiveUp() { m.limits.share = 101 }

// Layers are the ways to notice that a part is the same, each with its switch.
var Layers = map[string]func(*Memo){
	"recent values": func(m *Memo) { m.limits.recent = 0 },
	"memo":          func(m *Memo) { m.limits.part = 0 },
	"last state":    func(m *Memo) { m.limits.follow = math.MaxInt },
	"notes":         func(m *Memo) { m.limits.notes = 0 },
	"alike":         func(m *Memo) { m.limits.alike = 0 },
}

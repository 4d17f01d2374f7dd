package sharing

// NeverRest makes a memo follow the smallest objects, and go on whether it finds anything or not.
func (m *Memo) NeverRest() { m.limits.follow, m.limits.share = 0, 0 }

// GiveUp makes a memo leave objects to the generated code, once it has seen enough of them.
func (m *Memo) GiveUp() { m.limits.share = 101 }

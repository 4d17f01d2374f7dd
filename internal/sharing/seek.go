package sharing

// sought is a part that is looked for, and was not found: it is to be decoded, and perhaps kept.
type sought struct {
	key  key
	kept bool
}

// resting reports whether a part is not to be looked for: it is too small or too large, or its
// place rests.
func (s *shareable) resting(least, size int, own *traced) bool {
	if own != nil && own.trace != nil {
		return false
	}
	return s.skip > 0 || size < least || size > maxPart
}

// seek looks for a part: among the values that stood in its place lately, and in the memo. It
// assigns the value that it finds.
func (d *decoder) seek(s *shareable, of *site, to ref, b []byte, least, index int, k *key) (p sought, found bool) {
	if len(b) < least || len(b) > maxPart || !s.wanted() {
		return p, false
	}
	if r := s.same(b, index); r != nil {
		s.habit.same()
		to.set(of.typ, r.at)
		d.same(len(b))
		return p, true
	}
	if p.key = *k; p.key == (key{}) {
		p.key = d.keyOf(b)
	}
	if d.find(of, &s.habit, p.key, len(b), to.value(of.typ)) {
		d.remember(s, of.typ, to, b, index)
		return p, true
	}
	p.kept = s.skip == 0
	return p, false
}

// lookBack looks for a part in the last state of its object, and assigns it. The key is returned
// if it was made.
func (d *decoder) lookBack(s *shareable, of *site, to ref, b []byte, own *traced, at path, last ref) (k key, found bool) {
	if own == nil || own.trace == nil || len(b) < minTraced || len(b) > maxTracedBytes || !s.own.wanted() {
		return k, false
	}
	k = d.keyOf(b)
	found = own.trace.repeats(at, k) && !last.isNil()
	if !last.isNil() {
		s.own.looked(found)
	}
	if found {
		to.set(of.typ, last)
		d.same(len(b))
	}
	return k, found
}

// keepPart keeps a part that was not found, and is decoded now.
func (d *decoder) keepPart(s *shareable, of *site, value ref, b []byte, index int, p sought) {
	if p.kept {
		d.keep(of, &s.habit, p.key, len(b), value.value(of.typ))
		d.remember(s, of.typ, value, b, index)
	}
}

package sharing

// sought is a part that is looked for, and was not found: it is to be decoded, and perhaps kept.
type sought struct {
	key    key
	kept   bool // by the decoder
	shared bool // by the memo too
}

// resting reports whether a part is not to be looked for: it is too small or too large, or its
// place rests.
func (s *shareable) resting(least, size int) bool {
	return s.skip > 0 || size < least || size > maxPart
}

// seek looks for a part: among the values that stood in its place lately, and in the memo. It
// assigns the value that it finds.
func (d *decoder) seek(s *shareable, of *site, to ref, b []byte, least, index int) (p sought, found bool) {
	if len(b) < least || len(b) > maxPart || !s.wanted() {
		return p, false
	}
	if r := s.same(b, index); r != nil {
		s.habit.same()
		to.set(of.typ, r.at)
		d.same(len(b))
		if r.key != (key{}) {
			d.keep(of, &s.habit, r.key, len(b), r.at.value(of.typ))
			r.key = key{}
		}
		return p, true
	}
	p.key = d.keyOf(b)
	found, known := d.find(of, &s.habit, p.key, len(b), to.value(of.typ))
	if found {
		d.remember(s, of.typ, to, b, index, key{})
		return p, true
	}
	if s.skip > 0 {
		d.giveBackRecent(s)
		return p, false
	}
	p.kept, p.shared = true, known || s.good || s.pause == 0 && s.tries == 1
	if !p.shared && d.met.again(of, p.key) {
		p.shared = true
		s.hits++ // of the values that repeat, the first one is not kept
	}
	return p, false
}

// keepPart keeps a part that was not found, and is decoded now.
func (d *decoder) keepPart(s *shareable, of *site, value ref, b []byte, index int, p sought) {
	if !p.kept {
		return
	}
	if p.shared {
		d.keep(of, &s.habit, p.key, len(b), value.value(of.typ))
		p.key = key{}
	} else {
		trim(value.value(of.typ))
	}
	d.remember(s, of.typ, value, b, index, p.key)
}

package delta

// Coder codes whole documents that have no sibling. Its functions append to dst, and any number of
// goroutines may call them.
type Coder struct {
	Pack   func(dst, document []byte) []byte
	Unpack func(dst, payload []byte) ([]byte, error)
}

// CodeAlone gives a generation a coder, before its first document.
func (g *Generation) CodeAlone(c Coder) { g.coder, g.alone.of = &c, g }

// CodesAlone reports whether the generation has a coder.
func (g *Generation) CodesAlone() bool { return g.coder != nil }

// IsAlone reports whether the payloads of the base are coded whole. It is no base for Pack.
func (b *Base) IsAlone() bool { return b == &b.of.alone }

// PackAlone appends the payload of a document to dst, by the coder alone. of is as that of Pack.
func (g *Generation) PackAlone(dst, document []byte) (payload []byte, of *Base) {
	payload = g.coder.Pack(dst, document)
	if float64(len(payload)-len(dst)) > codedShare*float64(len(document)) {
		return append(dst, document...), nil
	}
	return payload, &g.alone
}

func (g *Generation) unpackAlone(dst, payload []byte) ([]byte, error) {
	document, err := g.coder.Unpack(dst[:0], payload)
	if err != nil {
		return nil, ErrDamaged
	}
	return document, nil
}

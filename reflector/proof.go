package reflector

// proof shows whether the copy is of the server's present: the server has not gone back in time
// since, and a state from its cache has caught up.
type proof struct {
	age age
	// truth is the version that ends the age named once the copy reaches it.
	truth string
	// suspect: the last watch was interrupted, and the server may have gone back in time since.
	suspect bool
	probes  int // those in a row that failed
}

// age is how old the state may be that the copy began with.
type age uint8

const (
	newest  age = iota // it was the server's newest, or has caught up
	unknown            // a cache had it, as the program asked, and it may be of any age
	named              // the same, and the server has named its version: truth
)

// probeAttempts is how often a server is probed that does not answer probes.
const probeAttempts = 3

// listed takes in a list. A list at the latest version is the proof itself.
func (p *proof) listed(s step, version string) {
	p.suspect = s.cached || s.poll
	switch {
	case s.cached:
		p.age = unknown
	case s.options.ResourceVersion == "":
		p.age = newest
	default:
		p.caughtUp(version)
	}
}

// watched takes in the end of a watch, and whether it brought something newer.
func (p *proof) watched(newer, interrupted bool) {
	p.suspect = p.suspect && !newer || interrupted || p.age == unknown
}

// probed takes in a probe: the version that the server named.
func (p *proof) probed(class Class, version, held string) {
	switch class {
	case WentBack:
	case OK:
		p.suspect, p.probes = false, 0
		p.name(version)
		p.caughtUp(held)
	default:
		p.probes++
		p.suspect = p.age != newest || p.probes < probeAttempts
	}
}

// name takes in the server's version at this moment.
func (p *proof) name(version string) {
	switch {
	case p.age == newest:
	case version == "":
		p.age = unknown
	default:
		p.age, p.truth = named, version
	}
}

// caughtUp takes in a version that the copy has reached, and reports whether the state may still be
// old.
func (p *proof) caughtUp(version string) (old bool) {
	if p.age == named && !behind(version, p.truth) {
		p.age = newest
	}
	return p.age != newest
}

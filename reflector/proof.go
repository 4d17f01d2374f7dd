package reflector

import (
	"slices"
	"time"

	"github.com/tributary-go/tributary/store"
)

// proof is the moment of which the copy is proven to be the server's state. A consistent answer
// names a version; when the copy reaches it, the copy is proven for the time of that request.
// Contact proves nothing: a slow link, a proxy or a server without etcd brings old news, too.
type proof struct {
	at     time.Time // zero: nothing is proven
	claims []claim   // versions that the copy has not reached, oldest first
	// cut is when the cache was last cut off from its server, or was replaced by a list of unknown
	// age. What was written before that may be missing, until the proof is younger.
	cut time.Time
	// compared is when the content was last compared with the server's, or replaced by a list. A
	// proof by version alone says nothing of a stream that went on in another history.
	compared time.Time
}

// whole reports whether nothing that was written before the last interruption can be missing.
func (p *proof) whole() bool { return !p.at.Before(p.cut) && !p.compared.Before(p.cut) }

// claim is a version that the server named in a consistent answer.
type claim struct {
	version store.Version
	asked   time.Time // when the request was made, so that the version is not older than this
}

// maxClaims bounds the claims of a copy that falls behind. The oldest is kept, because it is
// reached first, and the newest.
const maxClaims = 8

// listed takes in a list. If it was consistent, it is the proof itself, and of a history in which
// older claims may not exist.
func (p *proof) listed(version string, asked time.Time, consistent bool) {
	p.compared = wall(asked)
	if consistent {
		p.at, p.claims = p.compared, nil
		return
	}
	p.cut = p.compared
	p.reached(version)
}

// named takes in a claim, and the version that the copy has by now. Older claims of newer versions
// are of a history that the server has no more.
func (p *proof) named(c claim, held string) {
	c.asked = wall(c.asked)
	if n := len(p.claims); n > 0 && !c.asked.After(p.claims[n-1].asked) { // it is known
		p.reached(held)
		return
	}
	p.claims = slices.DeleteFunc(p.claims, func(old claim) bool { return c.version.Before(old.version) })
	if len(p.claims) == maxClaims {
		p.claims = slices.Delete(p.claims, 1, 2)
	}
	p.claims = append(p.claims, c)
	p.reached(held)
}

// reached takes in the version that the copy has. It is called for each event.
func (p *proof) reached(version string) {
	for len(p.claims) > 0 && store.Version(version).Reaches(p.claims[0].version) {
		p.at = p.claims[0].asked
		p.claims = slices.Delete(p.claims, 0, 1)
	}
}

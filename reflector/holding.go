package reflector

import "time"

// holding is the version that the store has, and the answers of the server that speak against it.
type holding struct {
	// version is the newest resource version with its effects in the store (invariant 1); a watch
	// goes on from here. Before the first list it is the version of the content that the store had
	// when Run began; empty without such content.
	version string
	// atLeast keeps a relist from going back in time; empty when only the latest version will do. A
	// state of an earlier run is believed from the first event or bookmark on.
	atLeast  string
	goneBack int       // witnesses in a row that the server's version is older than ours
	tooLarge int       // answers in a row that the version is too large
	hopped   time.Time // when a list last brought another history
}

// tooLargeAttempts is the number of answers "too large" that make a witness.
const tooLargeAttempts = 2

// reached takes in the version that a watch has reached; empty if it brought none.
func (h *holding) reached(version string) {
	if version != "" {
		h.version, h.atLeast = version, version
	}
}

func (h *holding) listed(version string, other bool, now time.Time) {
	hopped := h.hopped
	if other {
		hopped = now
	}
	*h = holding{version: version, atLeast: version, hopped: hopped}
}

// hopsFor is how long an address may lead to two clusters by turns, such as a cluster and its clone
// behind one balancer.
const hopsFor = time.Hour

// mayHop reports whether the next request may reach another history, which has the version held all
// the same. Only the newest state will do then, and no watch from that version.
func (h *holding) mayHop(now time.Time) bool {
	hops := !h.hopped.IsZero() && now.Sub(h.hopped) < hopsFor
	if hops {
		h.atLeast = ""
	}
	return hops
}

func (h *holding) watched(o outcome) {
	if o.contacts > 0 {
		h.reached(o.version)
		h.goneBack, h.tooLarge = 0, 0
	}
}

// refused takes in an answer against the version. From the first witness on only the latest version
// will do, and it is taken even if it is older than ours: the etcd of the server was restored from
// a backup. A server for which the version is too large is behind another server. It is given time
// before that counts as a witness.
func (h *holding) refused(class Class) {
	switch class {
	case TooLarge:
		if h.tooLarge++; h.tooLarge < tooLargeAttempts {
			return
		}
	case WentBack:
	default:
		return
	}
	h.goneBack++
	h.atLeast = ""
}

// doubted reports whether a list may bring a version older than the one held.
func (h *holding) doubted() bool { return h.goneBack > 0 && h.atLeast == "" }

// another reports whether a list that is made for a cause is of another history than the one held,
// even if its version is newer: witnesses have said so.
func (h *holding) another(cause Class) bool { return cause == History || h.doubted() }

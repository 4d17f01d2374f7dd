package reflector

// holding is the version that the store has, and the answers of the server that speak against it.
type holding struct {
	// version is the newest resource version with its effects in the store (invariant 1); a watch
	// goes on from here. Before the first list it is the version of the content that the store had
	// when Run began; empty without such content.
	version string
	// atLeast keeps a relist from going back in time; empty when only the latest version will do. A
	// state of an earlier run is believed from the first event or bookmark on.
	atLeast  string
	goneBack int // witnesses in a row that the server's version is older than ours
	tooLarge int // answers in a row that the version is too large
}

// tooLargeAttempts is the number of answers "too large" that make a witness.
const tooLargeAttempts = 2

// reached takes in the version that a watch has reached; empty if it brought none.
func (h *holding) reached(version string) {
	if version != "" {
		h.version, h.atLeast = version, version
	}
}

func (h *holding) listed(version string) { *h = holding{version: version, atLeast: version} }

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

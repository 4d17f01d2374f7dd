package reflector

import (
	"time"
)

// healing is the loss that puts the copy in doubt, and the pace of relists that heal such losses.
type healing struct {
	doubt Class         // of the last loss; empty once a list has healed all
	at    time.Time     // before this, no further relist for a loss
	delay time.Duration // between them; it grows while lists do not heal
}

const (
	healEvery = time.Minute      // at least, between relists for a loss
	healLimit = 30 * time.Minute // at most, when each list has the same undecodable object
)

// lost takes in a loss, or a doubt, in the middle of a watch. It reports whether a relist may heal
// it now. An object that no list heals delays no list for another reason.
func (h *healing) lost(class Class, now time.Time) (may bool) {
	if contradicts(class) && h.delay > healEvery {
		h.at, h.delay = h.at.Add(healEvery-h.delay), healEvery
	}
	h.doubt = class
	return h.due(now)
}

// due reports whether something is lost, and a relist may heal it now.
func (h *healing) due(now time.Time) bool { return h.doubt != "" && !now.Before(h.at) }

// begin reports whether a relist is due, and books the time of the next.
func (h *healing) begin(now time.Time) bool {
	due := h.due(now)
	if due {
		h.at = now.Add(max(h.delay, healEvery))
	}
	return due
}

// listed takes in a list. A list with undecodable objects is made again, ever more seldom: the
// objects may be mended on the server at any time.
func (h *healing) listed(o outcome) {
	if o.skipped == 0 {
		h.doubt, h.delay = "", 0
		return
	}
	h.doubt = Undecodable
	h.delay = min(max(2*h.delay, healEvery), healLimit)
	h.at = o.at.Add(h.delay)
}

// lostBy is the class if it is that of a loss, else empty.
func lostBy(class Class) Class {
	switch class {
	case Undecodable, StoreError, Unplaced, Drift, History:
		return class
	}
	return ""
}

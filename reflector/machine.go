package reflector

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// machine decides what a reflector does next. It has no clock, does no I/O and starts nothing: next says what to do,
// ended is told how it went. Not safe for concurrent use.
type machine struct {
	policy  policy
	backoff backoff

	// version is the newest resource version whose effects the store holds (invariant 1); a watch goes on from here.
	version string
	// synced: the store holds a whole state. Never false again.
	synced bool

	// list is why a list is due; empty when the store is whole and a watch is due.
	list Class
	// from is where the next LIST reads.
	from listFrom
	// atLeast keeps a relist from going back in time; empty on a server that was found not to have that version.
	atLeast string
	// noWatchList: this server does not do watch lists, or not in the end.
	noWatchList bool
	// watchLists: this server has completed one, so that a failure is not its nature.
	watchLists bool
	// listOnce: watch lists failed too often; this time a LIST will do.
	listOnce   bool
	incomplete int // watch lists in a row that did not complete
	tooLarge   int // answers in a row that the version is too large
	flaps      int // lists that completed since a watch last showed life

	// bookmarks: this server sends them, so that a silent watch means something.
	bookmarks bool
	silent    int // silent watches in a row

	doubtful  bool          // something was lost, and a relist is due once healAt has come
	doubt     Class         // of what was lost last
	healAt    time.Time     // before this, no further relist of that kind
	healDelay time.Duration // between them; it grows while lists do not heal

	delay time.Duration // to wait before anything else
	final error         // to stop with
}

// policy is what options decide of the protocol.
type policy struct {
	pageSize    int64
	stopOnFinal bool
	noWatchList bool
}

const (
	watchListAttempts = 3                // incomplete watch lists before LIST takes over
	tooLargeAttempts  = 2                // answers "too large" before the latest version will do
	silentAttempts    = 2                // silent watches, on a server that sends bookmarks, before a relist
	silentLimit       = 10               // the same on a server that was not seen to send any: there, silence is the rule
	healEvery         = time.Minute      // at least, between relists for the sake of what was lost
	healLimit         = 30 * time.Minute // at most, when each list has the same undecodable object
	shortWatch        = time.Second      // a watch that ends sooner, without an event, has failed
	steadyWatch       = 10 * time.Second // a watch that lasts this long shows life without an event
	fallbackPage      = 500              // of a list at the latest version, which the server may read from etcd
)

// listFrom is the consistency that a LIST asks for.
type listFrom int

const (
	fromCache  listFrom = iota // any version, or at least the one known: served from the watch cache
	fromLatest                 // the latest, in pages
	fromWhole                  // the latest in one piece, when pages expired before they were read
)

func newMachine(p policy, b backoff) *machine {
	return &machine{policy: p, backoff: b, list: OK, noWatchList: p.noWatchList || p.pageSize > 0}
}

// step is one thing to do.
type step struct {
	kind    stepKind
	options metav1.ListOptions // of a request
	wait    time.Duration
	cause   Class // of a list: why it is made; OK for the first
	err     error // to stop with
}

type stepKind int

const (
	doWatchList stepKind = iota
	doList
	doWatch
	doWait
	doStop
)

// outcome is how a request went.
type outcome struct {
	err       error
	complete  bool          // a list: the store took the state
	version   string        // the newest version whose effects the store holds after it; empty: no news
	contacts  int           // events and bookmarks of a watch
	bookmarks int           // bookmarks alone
	items     int           // of a list
	skipped   int           // of a list: objects that could not be decoded
	lived     time.Duration // from the request to its end
	due       bool          // a watch: it lasted as long as the server was asked for, about
	doubtful  bool          // the store's content may differ from the server's
	at        time.Time     // when it ended
}

func (m *machine) next() step {
	switch {
	case m.final != nil:
		return step{kind: doStop, err: m.final}
	case m.delay > 0:
		wait := m.delay
		m.delay = 0
		return step{kind: doWait, wait: wait}
	case m.list == "":
		return step{kind: doWatch, options: metav1.ListOptions{ResourceVersion: m.version, AllowWatchBookmarks: true}}
	case !m.noWatchList && !m.listOnce:
		return step{kind: doWatchList, cause: m.list, options: m.watchListOptions()}
	}
	return step{kind: doList, cause: m.list, options: m.listOptions()}
}

// watchListOptions ask for the state at least as new as atLeast, or as the moment of the request, and for what
// happens then (KEP-3157).
func (m *machine) watchListOptions() metav1.ListOptions {
	yes := true
	return metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersion: m.atLeast, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
}

func (m *machine) listOptions() metav1.ListOptions {
	from := m.from
	if m.policy.pageSize > 0 && from == fromCache {
		from = fromLatest // the watch cache ignores a limit at version 0
	}
	switch {
	case from == fromLatest && m.policy.pageSize > 0:
		return metav1.ListOptions{Limit: m.policy.pageSize}
	case from == fromLatest, from == fromCache && m.synced && m.atLeast == "":
		return metav1.ListOptions{Limit: fallbackPage}
	case from == fromWhole:
		return metav1.ListOptions{}
	case m.atLeast != "":
		return metav1.ListOptions{ResourceVersion: m.atLeast, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	}
	return metav1.ListOptions{ResourceVersion: "0"}
}

// ended takes in how the step s went, and returns its class.
func (m *machine) ended(s step, o outcome) Class {
	class := classify(o.err)
	if s.kind == doWatch {
		return m.watchEnded(class, o)
	}
	m.listEnded(s.kind, class, o)
	return class
}

func (m *machine) listEnded(kind stepKind, class Class, o outcome) {
	if o.complete {
		if kind == doWatchList {
			m.watchLists, m.bookmarks = true, true
		}
		m.version, m.atLeast = o.version, o.version
		m.synced, m.list, m.from, m.listOnce = true, "", fromCache, false
		m.incomplete, m.tooLarge, m.silent = 0, 0, 0
		m.healed(o)
		// A list is life, but lists that no watch follows must not go round and round.
		m.backoff.alive(m.flaps)
		m.flaps++
		return
	}
	switch {
	case m.stopsAt(class, o.err):
		return
	case kind == doWatchList && class == Refused:
		m.noWatchList = true
		return // LIST is asked at once
	case kind == doWatchList && class == Silent:
		m.noWatchList = !m.watchLists // it took the request and ignored what it asks
		m.listOnce = true
		return
	case kind == doWatchList && (class == Incomplete || class == Disconnected):
		if m.incomplete++; m.incomplete >= watchListAttempts {
			m.noWatchList = class == Incomplete && !m.watchLists
			m.listOnce = true
			return
		}
	case class == Expired && m.from != fromWhole:
		m.from++ // what was asked for is gone: ask for something newer, then for less trouble
		return
	case class == TooLarge:
		m.versionTooLarge()
	}
	m.wait(class, o.err)
}

func (m *machine) watchEnded(class Class, o outcome) Class {
	if o.version != "" {
		m.version, m.atLeast = o.version, o.version
	}
	m.bookmarks = m.bookmarks || o.bookmarks > 0
	m.doubtful = m.doubtful || o.doubtful
	if o.contacts > 0 {
		m.silent, m.tooLarge = 0, 0
	}
	if o.contacts > 0 || o.lived >= steadyWatch && class != Silent {
		m.flaps = 0
		m.backoff.alive(0)
	}
	if class == OK && o.contacts == 0 && o.lived < shortWatch && !o.due {
		class = Short
	}
	if m.stopsAt(class, o.err) {
		return class
	}
	switch class {
	case OK:
	case Expired:
		m.relist(class)
		if m.flaps > 0 { // the version came from a list a moment ago; what else failed since then has no part in that
			m.backoff.alive(m.flaps - 1)
			m.wait(class, o.err)
		}
	case Silent:
		// A watch from a version of the future is silent for ever: a list finds that out.
		if m.silent++; m.silent >= silentAttempts && m.bookmarks || m.silent >= silentLimit {
			m.relist(class)
		}
	case TooLarge:
		m.versionTooLarge()
		m.relist(class)
		m.wait(class, o.err)
	case NotFound:
		m.relist(class) // what comes back may be another resource under the same name
		m.wait(class, o.err)
	case Undecodable, StoreError, Unplaced:
	default:
		m.wait(class, o.err)
	}
	if m.mayHeal(o.at) {
		m.healAt = o.at.Add(max(m.healDelay, healEvery))
		m.relist(cmp.Or(lostBy(class), m.doubt, Undecodable))
	}
	return class
}

// healed takes in what a completed list did for what had been lost. One that has undecodable objects itself is tried
// again, ever more seldom: they may be mended on the server at any time.
func (m *machine) healed(o outcome) {
	if m.doubtful = o.skipped > 0; !m.doubtful {
		m.healDelay = 0
		return
	}
	m.healDelay = min(max(2*m.healDelay, healEvery), healLimit)
	m.healAt = o.at.Add(m.healDelay)
}

// lostBy is the class of a loss, if it is one.
func lostBy(class Class) Class {
	if class == Undecodable || class == StoreError || class == Unplaced {
		return class
	}
	return ""
}

// mayHeal reports whether a relist for the sake of lost events is due.
func (m *machine) mayHeal(now time.Time) bool { return m.doubtful && !now.Before(m.healAt) }

// lost is told that an event has just been lost, or put the copy in doubt. If it was lost, true means to end the watch.
func (m *machine) lost(now time.Time, class Class) (heal bool) {
	m.doubtful, m.doubt = true, class
	return m.mayHeal(now)
}

func (m *machine) relist(why Class) { m.list = why }

// versionTooLarge: the server is behind what was seen elsewhere. It is given time; then its latest has to do.
func (m *machine) versionTooLarge() {
	if m.tooLarge++; m.tooLarge >= tooLargeAttempts {
		m.atLeast = ""
	}
}

// stopsAt reports whether Run ends with this error.
func (m *machine) stopsAt(class Class, err error) bool {
	if m.policy.stopOnFinal && (class == Unauthorized || class == Forbidden || class == NotFound) {
		m.final = err
	}
	return m.final != nil
}

// wait delays what comes next.
func (m *machine) wait(class Class, err error) { m.delay = m.backoff.next(class, retryAfter(err)) }

package reflector

import (
	"cmp"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// machine decides what a reflector does next. It has no clock, does no I/O and starts nothing: next
// says what to do, ended is told how it went. Not safe for concurrent use.
type machine struct {
	policy  policy
	backoff backoff
	now     time.Time // when the last request ended

	// version is the newest resource version whose effects the store holds (invariant 1); a watch
	// goes on from here. Before the first list it is that of the content that the store had when
	// Run began; empty without such content.
	version string
	// synced: the store holds a whole state. Never false again.
	synced bool

	// list is why a list is due; empty when the store is whole and a watch is due.
	list Class
	// from is where the next LIST reads.
	from listFrom
	// atLeast keeps a relist from going back in time; empty when only the latest version will do.
	atLeast string
	// goneBack counts the witnesses in a row that the server's version is older than ours.
	goneBack int
	// byList: a watch list has failed, and a LIST is to bring this state.
	byList       bool
	failed       Class         // how that watch list failed
	refusedLists int           // LISTs in a row that an operator must permit
	restUntil    time.Time     // no watch list before this: one has failed when a LIST worked
	rest         time.Duration // the length of that rest; it grows while watch lists fail
	tooLarge     int           // answers in a row that the version is too large
	flaps        int           // lists that completed since a watch last showed life

	// bookmarks: this server sends them, so that a silent watch means something.
	bookmarks bool
	silent    int // silent watches in a row
	deaf      int // watches in a row that were answered with an error, and brought nothing

	pollAt time.Time // without watches, the next list is due then
	polls  int       // lists in a row that stood in for watches
	poll   bool      // the list that is due is one of them

	probe    bool // a probe is due before the next watch
	probes   int  // those in a row that failed
	unproven bool // the last watch was interrupted: the server may have gone back in time since
	// The state came from a cache, as the program asked, and may be older than the truth.
	old bool
	// With old: the version that proves otherwise once it is reached; empty while unknown.
	truth string

	doubtful  bool          // something was lost, and a relist is due once healAt has come
	doubt     Class         // of what was lost last
	healAt    time.Time     // before this, no further relist of that kind
	healDelay time.Duration // between them; it grows while lists do not heal

	delay time.Duration // to wait before anything else
	told  time.Duration // what the server asked to wait, of that delay
	final error         // to stop with
}

// policy is what options decide of the protocol.
type policy struct {
	pageSize    int64
	stopOnFinal bool
	noWatchList bool
	cachedFirst bool // the first LIST may be served from the server's cache
}

const (
	// At least, after a watch list that failed when a LIST worked.
	watchListRest    = time.Minute
	watchListLimit   = time.Hour // at most
	tooLargeAttempts = 2         // answers "too large" before the latest version will do
	// Silent watches, on a server that sends bookmarks, before a relist.
	silentAttempts = 2
	// The same on a server that was not seen to send any: there, silence is the rule.
	silentLimit = 10
	// Watches that fail, when lists may not, before lists stand in for them.
	deafAttempts = 8
	deafRefusals = 2 // the same when they are refused
	// Refused LISTs before the watch list is asked again: a role may have watch alone.
	watchListEvery = 6
	probeAttempts  = 3                // of a server that does not answer them
	healEvery      = time.Minute      // at least, between relists for the sake of what was lost
	healLimit      = 30 * time.Minute // at most, when each list has the same undecodable object
	shortWatch     = time.Second      // a watch that ends sooner, without an event, has failed
	steadyWatch    = 10 * time.Second // a watch that lasts this long shows life without an event
	// Of a list at the latest version, which the server may read from etcd.
	fallbackPage = 500
)

// listFrom is the consistency that a LIST asks for.
type listFrom int

const (
	// At least the version that is held, from the server's cache; the latest when none is.
	fromHeld   listFrom = iota
	fromLatest          // the latest, in pages
	fromWhole           // the latest in one piece, when pages expired before they were read
)

func newMachine(p policy, b backoff) *machine {
	p.noWatchList = p.noWatchList || p.pageSize > 0
	return &machine{policy: p, backoff: b, list: OK}
}

// begin takes in the version of what the store holds before the first list, or nothing.
func (m *machine) begin(held string) { m.version = held }

func (m *machine) next() step {
	switch {
	case m.final != nil:
		return step{kind: doStop, err: m.final}
	case m.delay > 0:
		wait, told := m.delay, m.told
		m.delay, m.told = 0, 0
		return step{kind: doWait, wait: wait, told: told}
	case m.list == "" && m.probe:
		return step{kind: doProbe, options: metav1.ListOptions{Limit: 1}}
	case m.list == "":
		return step{
			kind: doWatch, quiet: m.unproven, deaf: m.deaf > 0,
			options: metav1.ListOptions{ResourceVersion: m.version, AllowWatchBookmarks: true},
		}
	case !m.policy.noWatchList && !m.byList && !m.now.Before(m.restUntil):
		return m.listStep(doWatchList, m.watchListOptions())
	}
	s := m.listStep(doList, m.listOptions())
	s.cached = m.mayBeCached()
	return s
}

func (m *machine) listStep(kind stepKind, options metav1.ListOptions) step {
	return step{
		kind: kind, options: options, cause: m.list,
		poll: m.poll && kind == doList, // a watch list is a watch
		// The version held is in doubt then.
		behind: m.goneBack > 0 && m.atLeast == "" || m.list == Unplaced,
	}
}

// watchListOptions ask for the state at least as new as atLeast, or as the moment of the request,
// and for what happens then (KEP-3157).
func (m *machine) watchListOptions() metav1.ListOptions {
	yes := true
	return metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersion: m.atLeast, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
}

// mayBeCached: the program has asked for a first state that may be old, in place of none or of a
// dear one.
func (m *machine) mayBeCached() bool {
	return m.policy.cachedFirst && m.policy.pageSize == 0 && !m.synced && m.from == fromHeld && m.goneBack == 0
}

func (m *machine) listOptions() metav1.ListOptions {
	notOlder := metav1.ResourceVersionMatchNotOlderThan
	switch {
	case m.from == fromWhole:
		return metav1.ListOptions{}
	case m.mayBeCached() && m.version == "":
		return metav1.ListOptions{ResourceVersion: "0"}
	case m.mayBeCached():
		return metav1.ListOptions{ResourceVersion: m.version, ResourceVersionMatch: notOlder}
	// The watch cache ignores a limit, and older servers one beside a version.
	case m.policy.pageSize > 0:
		return metav1.ListOptions{Limit: m.policy.pageSize}
	case m.from == fromLatest, m.atLeast == "":
		return metav1.ListOptions{Limit: fallbackPage}
	}
	return metav1.ListOptions{ResourceVersion: m.atLeast, ResourceVersionMatch: notOlder}
}

// ended takes in how the step s went, and returns its class.
func (m *machine) ended(s step, o outcome) Class {
	m.now = o.at
	class := classify(o.err)
	switch s.kind {
	case doWatch:
		return m.watchEnded(s, class, o)
	case doProbe:
		m.probed(class, o)
	default:
		m.listEnded(s, class, o)
	}
	return class
}

func (m *machine) listEnded(s step, class Class, o outcome) {
	if o.complete {
		m.listed(s, o)
		return
	}
	switch {
	case m.stopsAt(class, o.err):
		return
	case s.kind == doWatchList && mayBeItsNature(class):
		m.byList, m.failed = true, class
		return // LIST is asked at once
	case class == Expired && m.from != fromWhole:
		m.from++ // what was asked for is gone: ask for something newer, then for less trouble
		return
	case class == TooLarge:
		m.versionTooLarge()
		if s.cached { // the cache has not even what the store had before
			m.from = fromLatest
		}
	case class == WentBack:
		m.wentBack()
	}
	m.byList = m.byList && m.onlyListIsAsked(class)
	// The copy is whole up to its version, and the watch may be permitted before the list is.
	if m.poll && lostBy(class) == "" {
		m.list, m.poll = "", false
		m.pollAt = o.at.Add(m.backoff.limit)
	}
	m.wait(class, o.err)
}

// mayBeItsNature reports whether a watch list that failed so says nothing of a LIST. A throttled
// server asks for no more requests, one that is not there answers none, a LIST needs the same
// connection and credentials, and the others are about the version or the store.
func mayBeItsNature(class Class) bool {
	switch class {
	case Throttled, Unreachable, TLS, Credentials, Expired, TooLarge, WentBack, StoreError:
		return false
	}
	return true
}

// onlyListIsAsked: asking for a watch list as well would double the requests of a client without
// rights. Now and then it is asked all the same, since the role that is granted may have watch
// alone.
func (m *machine) onlyListIsAsked(class Class) bool {
	if class != Forbidden && class != NotFound {
		m.refusedLists = 0
		return false
	}
	m.refusedLists++
	return m.refusedLists%watchListEvery != 0
}

func (m *machine) listed(s step, o outcome) {
	switch {
	case s.kind == doWatchList:
		m.bookmarks, m.rest, m.failed, m.deaf, m.polls = true, 0, "", 0, 0
	case m.byList: // LIST works where watch lists do not, for now
		m.rest = min(max(2*m.rest, watchListRest), watchListLimit)
		m.restUntil = o.at.Add(m.rest)
	}
	m.version, m.atLeast = o.version, o.version
	m.synced, m.list, m.from, m.byList = true, "", fromHeld, false
	m.tooLarge, m.silent, m.goneBack, m.refusedLists = 0, 0, 0, 0
	if m.poll = false; s.poll {
		m.pollLater(o.at)
	}
	m.probe, m.unproven = s.cached, s.cached || s.poll
	m.old = s.cached || m.old && s.options.ResourceVersion != "" && !m.reaches(o.version)
	m.healed(o)
	// A list is life, but lists that no watch follows must not go round and round.
	m.backoff.alive(m.flaps)
	m.flaps++
}

func (m *machine) watchEnded(s step, class Class, o outcome) Class {
	if o.version != "" {
		m.version, m.atLeast = o.version, o.version
	}
	m.bookmarks = m.bookmarks || o.bookmarks > 0
	m.doubtful = m.doubtful || o.doubtful
	if errors.Is(o.err, errQuiet) {
		m.probe = true
		return class
	}
	if o.contacts > 0 {
		m.silent, m.tooLarge, m.goneBack = 0, 0, 0
	}
	if o.contacts > 0 || o.lived >= steadyWatch && class != Silent {
		m.lives()
	}
	if class == OK && o.contacts == 0 && o.lived < shortWatch && !o.due {
		class = Short
	}
	m.unproven = m.unproven && o.version == s.options.ResourceVersion || m.interrupted(class, o) || m.old && m.truth == ""
	if m.stopsAt(class, o.err) {
		return class
	}
	m.after(class, o)
	if m.mayHeal(o.at) {
		m.healAt = o.at.Add(max(m.healDelay, healEvery))
		m.relist(cmp.Or(lostBy(class), m.doubt, Undecodable))
	}
	return class
}

// lives takes in a sign that watches work.
func (m *machine) lives() {
	m.flaps, m.deaf, m.polls, m.failed = 0, 0, 0, ""
	m.backoff.alive(0)
}

// interrupted reports whether a watch ended in a way that may hide a restart of the server. Of
// silent ones in a row it is the first: on a server without bookmarks they are the rule.
func (m *machine) interrupted(class Class, o outcome) bool {
	return lostBy(class) == "" && !(class == OK && o.due) && !(class == Silent && m.silent > 0)
}

// after decides what follows a watch.
func (m *machine) after(class Class, o outcome) {
	switch class {
	case OK:
	case Expired:
		m.relist(class)
		// The version came from a list a moment ago; what else failed since then has no part in
		// that.
		if m.flaps > 0 {
			m.backoff.alive(m.flaps - 1)
			m.wait(class, o.err)
		}
	case Silent:
		// A watch from a version of the future is silent for ever: a probe of the next one, or a
		// list, finds that out.
		if m.silent++; m.silent >= silentAttempts && m.bookmarks || m.silent >= silentLimit {
			m.relist(class)
		}
	case WentBack:
		m.wentBack()
		m.relist(class)
	case TooLarge:
		m.versionTooLarge()
		m.relist(class)
		m.wait(class, o.err)
	case NotFound:
		m.relist(class) // what comes back may be another resource under the same name
		m.wait(class, o.err)
	case Undecodable, StoreError, Unplaced:
	case Disconnected:
		m.resume(class, o.err)
	case Forbidden, Refused, ServerError, Unknown:
		if o.contacts > 0 || o.lived >= shortWatch {
			m.resume(class, o.err)
			return
		}
		m.wait(class, o.err)
		m.unwatched(class, o.at)
	default:
		m.wait(class, o.err)
	}
}

// unwatched lets lists stand in for watches, at the backoff's pace, when watches fail in a way that
// lists may not. Both are asked for again and again, each at its own pace.
func (m *machine) unwatched(class Class, at time.Time) {
	enough := deafAttempts
	if class == Forbidden {
		enough = deafRefusals
	}
	if m.backoff.patience > 0 { // it may not have read its roles yet
		return
	}
	if m.deaf++; m.deaf < enough && m.failed != class {
		return // with failed, the watch list has just failed so, and the LIST has not
	}
	if m.polls == 0 {
		m.pollLater(at)
	}
	if due := m.pollAt.Sub(at); due <= m.delay {
		m.delay = max(due, 0)
		m.relist(class)
		m.poll = true
	}
}

func (m *machine) pollLater(at time.Time) {
	m.pollAt = at.Add(m.backoff.within(m.backoff.doubled(m.polls)))
	m.polls++
}

// probed takes in the version that the server named. A probe that failed says nothing: the watch
// goes on, and the probe is made again when that is quiet, some times.
func (m *machine) probed(class Class, o outcome) {
	m.probe = false
	switch class {
	case WentBack:
		m.wentBack()
		m.relist(class)
	case OK:
		m.truth = o.version
		m.unproven, m.probes = false, 0
		m.caughtUp(m.version)
		m.lives() // a watch was open, or a list has just been read, and the server answers
	default:
		m.probes++
		m.unproven = m.old || m.probes < probeAttempts
	}
}

// caughtUp is told of each version that a watch reaches, and reports whether the state may still be
// old.
func (m *machine) caughtUp(version string) (old bool) {
	m.old = m.old && !m.reaches(version)
	return m.old
}

// reaches reports whether a version proves that the state is not old any more.
func (m *machine) reaches(version string) bool { return m.truth != "" && !behind(version, m.truth) }

// wentBack counts a witness. Only the latest version will do from now on, and with one witness it
// is taken even if it is older than ours: that is what a server says whose etcd was restored from a
// backup.
func (m *machine) wentBack() {
	m.goneBack++
	m.atLeast = ""
}

// healed takes in what a completed list did for what had been lost. One that has undecodable
// objects itself is tried again, ever more seldom: they may be mended on the server at any time.
func (m *machine) healed(o outcome) {
	if m.doubtful = o.skipped > 0; !m.doubtful {
		m.healDelay = 0
		return
	}
	m.doubt = Undecodable
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

// lost is told that an event has just been lost, or put the copy in doubt. If it was lost, true
// means to end the watch.
func (m *machine) lost(now time.Time, class Class) (heal bool) {
	m.doubtful, m.doubt = true, class
	return m.mayHeal(now)
}

func (m *machine) relist(why Class) { m.list = why }

// versionTooLarge: the server is behind what was seen elsewhere. It is given time; then its latest
// has to do.
func (m *machine) versionTooLarge() {
	if m.tooLarge++; m.tooLarge >= tooLargeAttempts {
		m.wentBack()
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
func (m *machine) wait(class Class, err error) {
	m.told = retryAfter(err)
	m.delay = m.backoff.next(class, m.told)
}

// resume is wait for the end of a watch that lived: the first retry is at once.
func (m *machine) resume(class Class, err error) {
	if retryAfter(err) == 0 {
		m.delay = m.backoff.resume()
	}
	if m.delay == 0 {
		m.wait(class, err)
	}
}

package reflector

import (
	"cmp"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

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

// watchHealth is the record of the watches: whether they work on this server, or lists must stand
// in for them.
type watchHealth struct {
	bookmarks bool // this server sends them, so that a silent watch means something
	silent    int  // silent watches in a row
	deaf      int  // watches in a row that were answered with an error, and brought nothing
	lists     int  // lists that completed since a watch last showed life
	// failed is the class of the last watch list that failed, if no watch has shown life since.
	failed Class
	polls  int       // lists in a row that stood in for watches
	pollAt time.Time // the next of them is due then
}

const (
	// Silent watches, on a server that sends bookmarks, before a relist.
	silentAttempts = 2
	// The same on a server that was not seen to send any: there, silence is the rule.
	silentLimit = 10
	// Watches that fail, when lists may not, before lists stand in for them.
	deafAttempts = 8
	deafRefusals = 2                // the same when they are refused
	shortWatch   = time.Second      // a watch that ends sooner, without an event, has failed
	steadyWatch  = 10 * time.Second // a watch that lasts this long shows life without an event
)

// ended takes in the end of a watch, and returns its class: one that the server ended well, but at
// once and without an event, is Short.
func (w *watchHealth) ended(class Class, o outcome) Class {
	if class == OK && o.err == nil && o.contacts == 0 && o.lived < shortWatch && !o.due {
		class = Short
	}
	w.bookmarks = w.bookmarks || o.bookmarks > 0
	if o.contacts > 0 {
		w.silent = 0
	}
	if class == Silent {
		w.silent++
	}
	return class
}

// showsLife reports whether a watch is a sign that watches work.
func showsLife(class Class, o outcome) bool {
	return o.contacts > 0 || o.lived >= steadyWatch && class != Silent
}

// lives takes in a sign that watches work.
func (w *watchHealth) lives() { w.lists, w.deaf, w.polls, w.failed = 0, 0, 0, "" }

// listed takes in a complete list. A watch list is a watch that works, and ends with a bookmark.
func (w *watchHealth) listed(kind stepKind) {
	w.silent = 0
	if kind == doWatchList {
		w.bookmarks, w.deaf, w.polls, w.failed = true, 0, 0, ""
	}
}

// interrupted reports whether a watch that was taken in has ended in a way that may hide a restart
// of the server, and not by a doubt of ours. Of silent watches in a row it is the first: on a
// server without bookmarks they are the rule.
func (w *watchHealth) interrupted(class Class, o outcome) bool {
	return lostBy(class) == "" && !errors.Is(o.err, errDoubted) && !(class == OK && o.due) && !(class == Silent && w.silent > 1)
}

// tooSilent reports whether silence has lasted for so many watches that a list must look.
func (w *watchHealth) tooSilent() bool {
	return w.silent >= silentAttempts && w.bookmarks || w.silent >= silentLimit
}

// refused takes in a watch that was answered with an error, and reports whether lists are to stand
// in for watches. They do so at once if the watch list has just failed in the same way, and the
// LIST has not.
func (w *watchHealth) refused(class Class) bool {
	enough := deafAttempts
	if class == Forbidden {
		enough = deafRefusals
	}
	w.deaf++
	return w.deaf >= enough || w.failed == class
}

// pollLater sets the time of the next list that stands in for a watch.
func (w *watchHealth) pollLater(at time.Time, b *pace.Asker) {
	w.pollAt = at.Add(b.Within(b.Doubled(w.polls)))
	w.polls++
}

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

// losses are the objects of which the cache lacks the newest state, by key, since the newest list.
// Those of which that state could not be decoded or stored are unusable. All objects without a
// readable key are one, but in a list.
type losses struct {
	keys     map[string]bool // true: unusable
	unusable int
}

// maxLosses bounds the keys. Beyond them each loss counts, and may be of any object.
const maxLosses = 10_000

func (l *losses) add(key string, unusable bool) {
	was, known := l.keys[key]
	switch {
	case unusable && !was:
		l.unusable++
	case was && !unusable:
		l.unusable--
	}
	if !known && len(l.keys) == maxLosses {
		return
	}
	if l.keys == nil {
		l.keys = map[string]bool{}
	}
	l.keys[key] = unusable
}

// mended takes in a state of an object that the cache has.
func (l *losses) mended(key string) {
	if l.keys[key] {
		l.unusable--
	}
	delete(l.keys, key)
}

// explain reports whether the object may differ from the server's for that reason.
func (l *losses) explain(key string) bool {
	_, lost := l.keys[key]
	return lost || len(l.keys) == maxLosses
}

// lossOf is the object that an error in place of an event concerns, and whether it cannot be used.
// A deleted object is none that anyone could use.
func lossOf[T store.Object](event listwatch.Event[T], err error) (key string, unusable bool) {
	var d *listwatch.DecodeError
	switch {
	case errors.As(err, &d):
		return d.Object, d.Event != string(watch.Deleted)
	case event.Type == watch.Bookmark:
		return "", false
	}
	return store.KeyOf(event.Object), !errors.Is(err, stream.ErrUnplaced)
}

// listPlan is the list that is due: its cause, and the requests that may bring it.
type listPlan struct {
	// Of the options.
	pageSize    int64
	watchLists  bool // the source has them, and none forbids them
	cachedFirst bool // the first LIST may be served from the server's cache

	// page is the size of the next LIST's pages. It is halved when a page took too long to be read.
	page   int64
	cause  Class // OK until the first list
	from   listFrom
	byList bool // a watch list has failed, and a LIST is to bring this state
	// confirm: the last list was Shrunk, and this one is the second answer.
	confirm bool
	// refused counts LISTs in a row that an operator must permit.
	refused int
	rest    stream.Rest // from watch lists, after one that failed when a LIST worked
}

// listFrom is the consistency that a LIST asks for.
type listFrom int

const (
	// At least the version that is held, from the server's cache; the latest when none is.
	fromHeld   listFrom = iota
	fromLatest          // the latest, in pages
	fromWhole           // the latest in one piece, when pages expired before they were read
)

const (
	// Refused LISTs before the watch list is asked again: a role may have watch alone.
	watchListEvery = 6
	// Of a list at the latest version, which the server may read from etcd.
	fallbackPage = 500
	leastPage    = 25
)

func newListPlan(o options, watchLists bool) listPlan {
	return listPlan{
		pageSize: o.pageSize, page: cmp.Or(o.pageSize, fallbackPage), cause: OK,
		watchLists: watchLists && o.pageSize == 0, cachedFirst: o.cachedFirst && o.pageSize == 0,
	}
}

// step is the request that is due. With poll it stands in for a watch, unless it is one.
func (p *listPlan) step(poll bool, h *holding, now time.Time) step {
	s := step{cause: p.cause, behind: h.doubted() || p.cause == Unplaced, confirmed: p.confirm}
	if p.watchLists && !p.byList && p.rest.Over(now) {
		s.kind, s.options = doWatchList, stream.WatchList(h.atLeast)
		return s
	}
	// The program has asked for a first state that may be old, in place of none or of a dear one.
	s.cached = p.cachedFirst && p.cause == OK && p.from == fromHeld && h.goneBack == 0
	s.kind, s.poll, s.options = doList, poll, p.listOptions(s.cached, h)
	return s
}

func (p *listPlan) listOptions(cached bool, h *holding) metav1.ListOptions {
	notOlder := metav1.ResourceVersionMatchNotOlderThan
	switch {
	case p.from == fromWhole:
		return metav1.ListOptions{}
	case cached && h.version == "":
		return metav1.ListOptions{ResourceVersion: "0"}
	case cached:
		return metav1.ListOptions{ResourceVersion: h.version, ResourceVersionMatch: notOlder}
	// The watch cache ignores a limit, and older servers one beside a version.
	case p.pageSize > 0:
		return metav1.ListOptions{Limit: p.page}
	case p.from == fromLatest, h.atLeast == "":
		return metav1.ListOptions{Limit: p.page}
	}
	return metav1.ListOptions{ResourceVersion: h.atLeast, ResourceVersionMatch: notOlder}
}

func (p *listPlan) listed(kind stepKind, at time.Time) {
	switch {
	case kind == doWatchList:
		p.rest.End()
	case p.byList: // LIST works where watch lists do not, for now
		p.rest.Begin(at)
	}
	p.from, p.byList, p.refused, p.confirm = fromHeld, false, 0, false
	p.page = min(2*p.page, cmp.Or(p.pageSize, fallbackPage))
}

// brokenOff takes in a LIST that ended after some of its objects. A server ends a request after a
// minute, which a page over a slow link may take: the next LIST has pages, and smaller ones.
func (p *listPlan) brokenOff(s step, class Class) {
	if s.kind != doList || class != Disconnected && class != Silent && class != ServerError {
		return
	}
	p.from = max(p.from, fromLatest)
	p.page = max(p.page/2, min(p.page, leastPage))
}

// newer plans a list for a newer version after one that the server no longer has, then one without
// pages. It reports whether there is such a list left.
func (p *listPlan) newer() bool {
	if p.from == fromWhole {
		return false
	}
	p.from++
	return true
}

// failed takes in a list that is repeated after a wait.
func (p *listPlan) failed(s step, class Class) {
	if p.confirm = class == Shrunk; p.confirm { // another kind of request, at the latest version
		p.from, p.byList = fromLatest, true
		return
	}
	if class == TooLarge && s.cached { // the cache is behind the store's first content
		p.from = fromLatest
	}
	if !p.byList {
		return
	}
	if class != Forbidden && class != NotFound {
		p.byList, p.refused = false, 0
		return
	}
	// To ask for a watch list as well would double the requests of a client without rights. It is
	// asked now and then, since the role that is granted may have watch alone.
	p.refused++
	p.byList = p.refused%watchListEvery != 0
}

func init() {
	watchlist.ThenList = func(err error) bool { return listMayWork(Classify(err)) }
}

// listMayWork reports whether a LIST may work after a watch list failed with class. A throttled
// server asks for no more requests, and an absent one answers none. A LIST needs the same
// connection and credentials. The other classes are about the version or the store.
func listMayWork(class Class) bool {
	switch class {
	case Throttled, Unreachable, TLS, Credentials, Expired, TooLarge, WentBack, StoreError, Shrunk:
		return false
	}
	return true
}

package reflector

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/internal/watchlist"
)

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
	watchlist.ThenList = func(err error) bool { return listMayWork(classify(err)) }
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

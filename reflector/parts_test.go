package reflector

import (
	"cmp"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/store"
)

// outcomeOf is a row of a transcript of one part of the machine: an outcome, and the part after it.
type outcomeOf[P any] struct {
	text string
	take func(*P)
	want P
}

// tell gives a part one outcome after the other.
func tell[P any](t *testing.T, part P, rows []outcomeOf[P]) {
	t.Helper()
	for _, row := range rows {
		row.take(&part)
		require.Equal(t, row.want, part, row.text)
	}
}

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return noon.Add(d) }

func TestHolding(t *testing.T) {
	var never time.Time
	tell(t, holding{version: "3"}, []outcomeOf[holding]{
		{"a list begins the copy, and binds the next", func(h *holding) { h.listed("5", false, noon) }, holding{"5", "5", 0, 0, never}},
		{"a watch brings 7", func(h *holding) { h.watched(outcome{version: "7", contacts: 2}) }, holding{"7", "7", 0, 0, never}},
		{"a watch without a version moves nothing", func(h *holding) { h.watched(outcome{}) }, holding{"7", "7", 0, 0, never}},
		{"7 is too large for a server that lags", func(h *holding) { h.refused(TooLarge) }, holding{"7", "7", 0, 1, never}},
		{"an event is a sign that it does not", func(h *holding) { h.watched(outcome{version: "8", contacts: 1}) }, holding{"8", "8", 0, 0, never}},
		{"one lag", func(h *holding) { h.refused(TooLarge) }, holding{"8", "8", 0, 1, never}},
		{"two are a witness: only the latest version will do", func(h *holding) { h.refused(TooLarge) }, holding{"8", "", 1, 2, never}},
		{"any other error says nothing", func(h *holding) { h.refused(ServerError) }, holding{"8", "", 1, 2, never}},
		{"a second witness", func(h *holding) { h.refused(WentBack) }, holding{"8", "", 2, 2, never}},
		{"the older state is taken", func(h *holding) { h.listed("4", true, noon) }, holding{"4", "4", 0, 0, noon}},
	})
	doubted := holding{version: "8"}
	require.False(t, doubted.doubted(), "content of an earlier run is believed until a witness comes")
	doubted.refused(WentBack)
	require.True(t, doubted.doubted())
	hops := holding{version: "8", atLeast: "8"}
	hops.listed("9", true, noon)
	require.True(t, hops.mayHop(after(time.Minute)), "the version may be one of two histories")
	require.Empty(t, hops.atLeast, "the newest state alone tells which of them answers now")
	hops.listed("10", false, after(2*time.Minute))
	require.True(t, hops.mayHop(after(time.Minute)))
	require.False(t, hops.mayHop(after(2*time.Hour)))
}

func TestListPlan(t *testing.T) {
	plan := newListPlan(options{}, true)
	request := func(kind stepKind, match, version string, limit int64) {
		t.Helper()
		s := plan.step(false, &holding{version: "7", atLeast: "7"}, noon)
		require.Equal(t, kind, s.kind)
		require.Equal(t, version, s.options.ResourceVersion)
		require.Equal(t, match, string(s.options.ResourceVersionMatch))
		require.Equal(t, limit, s.options.Limit)
	}
	request(doWatchList, "NotOlderThan", "7", 0)
	plan.byList = true // the watch list has failed
	request(doList, "NotOlderThan", "7", 0)
	require.True(t, plan.newer(), "the version is gone")
	request(doList, "", "", fallbackPage)
	require.True(t, plan.newer(), "and so is the next page")
	request(doList, "", "", 0)
	require.False(t, plan.newer(), "no list is left that could be newer")
	for n := 1; n < watchListEvery; n++ {
		plan.failed(step{kind: doList}, Forbidden)
		require.True(t, plan.byList, "refusal %d: the LIST is asked alone", n)
	}
	plan.failed(step{kind: doList}, Forbidden)
	require.False(t, plan.byList, "a role may have watch alone")
	plan.byList = true
	plan.failed(step{kind: doList}, ServerError)
	require.False(t, plan.byList, "the server was no more than ill")

	for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		plan.byList = true
		plan.listed(doList, noon)
		require.Equal(t, doList, plan.step(false, &holding{}, after(want-1)).kind, "LIST works where watch lists do not")
		require.Equal(t, doWatchList, plan.step(false, &holding{}, after(want)).kind)
	}
	plan.listed(doWatchList, noon)
	plan.byList = true
	plan.listed(doList, noon)
	require.Equal(t, doWatchList, plan.step(false, &holding{}, after(time.Minute)).kind, "a watch list has worked since")
}

// TestPagesShrinkWhileTheyBreakOff: over a link so slow that a server ends a page of 500 objects, a
// LIST comes to its end in smaller ones. A whole list lets them grow again.
func TestPagesShrinkWhileTheyBreakOff(t *testing.T) {
	for size, want := range map[int64][]int64{0: {500, 250, 125, 62, 31, 25, 25}, 40: {40, 25, 25}, 10: {10, 10}} {
		m := newMachine(options{pageSize: size, backoffInitial: 1, backoffLimit: 1}, false, func() float64 { return 0 })
		for _, page := range want {
			s := m.next()
			require.Equal(t, page, s.options.Limit)
			require.Empty(t, s.options.ResourceVersion, "the newest state")
			m.ended(s, outcome{err: io.ErrUnexpectedEOF, items: 7, at: noon})
		}
		last := want[len(want)-1]
		s := m.next()
		m.ended(s, outcome{err: io.ErrUnexpectedEOF, at: noon})
		require.Equal(t, last, m.plan.page, "a list that brought nothing says nothing of its pages")
		m.ended(m.next(), outcome{complete: true, version: "5", items: 1000, at: noon})
		require.Equal(t, min(2*last, cmp.Or(size, fallbackPage)), m.plan.page)
	}
	// A relist in one piece, from the server's cache, is made in pages then.
	m := newMachine(options{backoffInitial: 1, backoffLimit: 1}, false, func() float64 { return 0 })
	m.ended(m.next(), outcome{complete: true, version: "5", at: noon})
	m.relist(Expired)
	s := m.next()
	require.Zero(t, s.options.Limit)
	m.ended(s, outcome{err: io.ErrUnexpectedEOF, items: 7, at: noon})
	require.EqualValues(t, 250, m.next().options.Limit)
}

func TestListPlanOfACachedFirstList(t *testing.T) {
	plan := newListPlan(options{cachedFirst: true}, false)
	first := func(h holding) step { return plan.step(false, &h, noon) }
	require.Equal(t, "0", first(holding{}).options.ResourceVersion)
	require.Equal(t, "5", first(holding{version: "5"}).options.ResourceVersion)
	require.True(t, first(holding{version: "5"}).cached)
	require.False(t, first(holding{version: "5", goneBack: 1}).cached, "only the latest will do")
	plan.failed(first(holding{version: "5"}), TooLarge)
	require.False(t, first(holding{version: "5"}).cached, "the cache is behind the store's first content")
	plan.listed(doList, noon)
	plan.cause = Expired
	require.False(t, first(holding{version: "5", atLeast: "5"}).cached, "a relist")
	require.False(t, newListPlan(options{cachedFirst: true, pageSize: 10}, true).cachedFirst)
}

func TestWatchHealth(t *testing.T) {
	ended := func(class, want Class, o outcome) func(*watchHealth) {
		return func(w *watchHealth) { require.Equal(t, want, w.ended(class, o)) }
	}
	tell(t, watchHealth{}, []outcomeOf[watchHealth]{
		{"silence", ended(Silent, Silent, outcome{lived: time.Hour}), watchHealth{silent: 1}},
		{"again", ended(Silent, Silent, outcome{lived: time.Hour}), watchHealth{silent: 2}},
		{"a bookmark", ended(Disconnected, Disconnected, outcome{contacts: 1, bookmarks: 1}), watchHealth{bookmarks: true}},
		{"silence again", ended(Silent, Silent, outcome{lived: time.Hour}), watchHealth{bookmarks: true, silent: 1}},
		{"an end at once", ended(OK, Short, outcome{}), watchHealth{bookmarks: true, silent: 1}},
		{"at the server's timeout", ended(OK, OK, outcome{due: true}), watchHealth{bookmarks: true, silent: 1}},
		{"a list", func(w *watchHealth) { w.listed(doList) }, watchHealth{bookmarks: true}},
		{"a refusal", func(w *watchHealth) { require.False(t, w.refused(Forbidden)) }, watchHealth{bookmarks: true, deaf: 1}},
		{"the second", func(w *watchHealth) { require.True(t, w.refused(Forbidden)) }, watchHealth{bookmarks: true, deaf: 2}},
		{"an error needs more", func(w *watchHealth) { require.False(t, w.refused(ServerError)) }, watchHealth{bookmarks: true, deaf: 3}},
		{"a watch list, too", func(w *watchHealth) { w.failed = ServerError }, watchHealth{bookmarks: true, deaf: 3, failed: ServerError}},
		{"is enough", func(w *watchHealth) { require.True(t, w.refused(ServerError)) }, watchHealth{bookmarks: true, deaf: 4, failed: ServerError}},
		{"life", func(w *watchHealth) { w.lives() }, watchHealth{bookmarks: true}},
	})
	for attempts, w := range map[int]*watchHealth{silentAttempts: {bookmarks: true}, silentLimit: {}} {
		for n := 1; n <= attempts; n++ {
			w.ended(Silent, outcome{})
			require.Equal(t, n == 1, w.interrupted(Silent, outcome{}), "only the first may hide a restart")
			require.Equal(t, n == attempts, w.tooSilent())
		}
	}
	w := &watchHealth{}
	require.False(t, w.interrupted(OK, outcome{due: true}), "the server ended it in its time")
	require.True(t, w.interrupted(OK, outcome{}), "it ended it earlier")
	require.False(t, w.interrupted(Undecodable, outcome{}), "we ended it")
	require.False(t, showsLife(Silent, outcome{lived: time.Hour}))
	require.True(t, showsLife(Disconnected, outcome{lived: steadyWatch}))
}

func TestWatchHealthPacesTheListsThatStandIn(t *testing.T) {
	w, b := &watchHealth{}, &pace.Asker{Initial: time.Second, Limit: 3 * time.Second, Random: func() float64 { return 0.5 }}
	for _, want := range []time.Duration{500, 1000, 1500, 1500} {
		w.pollLater(noon, b)
		require.Equal(t, want*time.Millisecond, w.pollAt.Sub(noon))
	}
}

func TestProof(t *testing.T) {
	claimed := func(version string, minute int) claim {
		return claim{store.Version(version), after(time.Duration(minute) * time.Minute)}
	}
	at := func(minute int) time.Time { return after(time.Duration(minute) * time.Minute) }
	since := func(minute int, p proof) proof { // the list of that minute may be of any age
		p.cut, p.compared = at(minute), at(minute)
		return p
	}
	tell(t, proof{}, []outcomeOf[proof]{
		{"a state from the cache proves nothing", func(p *proof) { p.listed("5", at(0), false) }, since(0, proof{})},
		{"events prove nothing", func(p *proof) { p.reached("6") }, since(0, proof{})},
		{"the server is at 8", func(p *proof) { p.named(claimed("8", 1), "6") }, since(0, proof{claims: []claim{claimed("8", 1)}})},
		{"and at 12", func(p *proof) { p.named(claimed("12", 2), "6") }, since(0, proof{claims: []claim{claimed("8", 1), claimed("12", 2)}})},
		{"a list not older than 5 is at 7", func(p *proof) { p.listed("7", at(3), false) }, since(3, proof{claims: []claim{claimed("8", 1), claimed("12", 2)}})},
		{"at 9 the copy is that of the first minute", func(p *proof) { p.reached("9") }, since(3, proof{at: at(1), claims: []claim{claimed("12", 2)}})},
		{"at 12 of the second", func(p *proof) { p.reached("12") }, since(3, proof{at: at(2), claims: []claim{}})},
		{"a version that is held already", func(p *proof) { p.named(claimed("11", 4), "12") }, since(3, proof{at: at(4), claims: []claim{}})},
		{"the server is at 20", func(p *proof) { p.named(claimed("20", 5), "12") }, since(3, proof{at: at(4), claims: []claim{claimed("20", 5)}})},
		{"a consistent list, of another history even", func(p *proof) { p.listed("3", at(6), true) }, proof{at: at(6), cut: at(3), compared: at(6)}},
		{"a source without versions answers", func(p *proof) { p.named(claimed("", 7), "") }, proof{at: at(7), claims: []claim{}, cut: at(3), compared: at(6)}},
	})
	cut := &proof{at: at(1), cut: at(2), compared: at(1)}
	require.False(t, cut.whole())
	cut.named(claimed("5", 3), "5")
	require.False(t, cut.whole(), "the version may be one of another history")
	cut.compared = at(3)
	require.True(t, cut.whole())
	back := &proof{}
	back.named(claimed("20", 1), "5")
	back.named(claimed("12", 2), "5")
	require.Equal(t, []claim{claimed("12", 2)}, back.claims, "a server that went back never reaches 20")
	far := &proof{}
	for minute := range 100 {
		far.named(claimed(fmt.Sprint(100+minute), minute), "1")
	}
	require.Len(t, far.claims, maxClaims)
	require.Equal(t, claimed("100", 0), far.claims[0], "the oldest is reached first")
	require.Equal(t, claimed("199", 99), far.claims[maxClaims-1])
	far.reached("100")
	require.Equal(t, at(0), far.at)
}

func TestHealing(t *testing.T) {
	tell(t, healing{}, []outcomeOf[healing]{
		{"an event is lost: a relist at once", func(h *healing) { require.True(t, h.lost(StoreError, noon)) }, healing{doubt: StoreError}},
		{"the watch has ended", func(h *healing) { require.True(t, h.begin(noon)) }, healing{doubt: StoreError, at: after(healEvery)}},
		{"one relist a minute", func(h *healing) { require.False(t, h.begin(after(healEvery-1))) }, healing{doubt: StoreError, at: after(healEvery)}},
		{"the list heals", func(h *healing) { h.listed(outcome{at: noon}) }, healing{at: after(healEvery)}},
		{"a loss within the minute", func(h *healing) { require.False(t, h.lost(Unplaced, noon)) }, healing{doubt: Unplaced, at: after(healEvery)}},
		{"may be healed after it", func(h *healing) { require.True(t, h.begin(after(healEvery))) }, healing{doubt: Unplaced, at: after(2 * healEvery)}},
		{"the list has a bad object", func(h *healing) { h.listed(outcome{at: noon, skipped: 1}) }, healing{Undecodable, after(healEvery), healEvery}},
		{"still", func(h *healing) { h.listed(outcome{at: noon, skipped: 2}) }, healing{Undecodable, after(2 * healEvery), 2 * healEvery}},
		{"for days", func(h *healing) {
			for range 20 {
				h.listed(outcome{at: noon, skipped: 1})
			}
		}, healing{Undecodable, after(healLimit), healLimit}},
		{"and another history", func(h *healing) { require.False(t, h.lost(History, noon)) }, healing{History, after(healEvery), healEvery}},
		{"mended", func(h *healing) { h.listed(outcome{at: noon}) }, healing{at: after(healEvery)}},
	})
}

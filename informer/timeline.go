package informer

import (
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/store"
)

// timeline has the last changes of a store, under numbers that never repeat, and the place of each
// reader among them. A reader finds all changes since its place; or a [gap] if the timeline no
// longer has them. It is not safe for concurrent use.
type timeline struct {
	epoch       time.Time // the zero of noted.at
	capacity    int       // changes held at most
	slots       []noted   // change n is in slot n % len(slots); they grow with the changes held
	wide        wide
	first, next uint64 // the numbers of the oldest change held, and of the next change to come
	// latest is the store's state: after all changes, and after those being added.
	latest func() snapshot

	readers []*reader
	slowest uint64 // no reader without a past has a next change before this one
	behind  int    // the number of readers with a past
	deaths  deaths // evicted while a reader was behind

	// Changes that every reader has read release their objects. Otherwise a deleted Secret, or many
	// old states of a large object, would live until the timeline is full.
	caughtUp int    // the number of readers that have read everything
	kept     uint64 // the number of the oldest change with its objects
}

// told is an event with the time of its arrival since the timeline's epoch.
type told struct {
	event
	at time.Duration
}

// noted is a change in the timeline.
type noted struct {
	told
	had store.Entry // for a deletion: the stored object, which may be older than the event's

	// Of the event's object, which may be released before them.
	uid     types.UID
	version store.Version
}

// before is the object that the store had before the change; nil if it had none.
func (n *noted) before() store.Entry {
	if n.Type == Deleted {
		return n.had
	}
	return n.Old
}

// reader is the place of one reader.
type reader struct {
	next  uint64   // the number of its next change
	index int      // in the timeline's readers
	past  *past    // the state before next, once that change is evicted
	first *reading // the state at which it begins, until it is read
}

func newTimeline(capacity int, latest func() snapshot) timeline {
	return timeline{
		epoch: time.Now(), capacity: capacity, latest: latest,
		deaths: deaths{limit: deathsPerRing * capacity},
	}
}

func (t *timeline) now() time.Duration { return time.Since(t.epoch) }

func (t *timeline) slot(number uint64) *noted { return &t.slots[number%uint64(len(t.slots))] }

// add appends the changes of one write, over the oldest ones.
func (t *timeline) add(changes ...noted) {
	at := t.now()
	if end, capacity := t.next+uint64(len(changes)), uint64(t.capacity); end > capacity+t.slowest {
		t.keepPasts(end-capacity, t.latest, changes)
	}
	for i := range changes {
		switch held := int(t.next - t.first); {
		case held == t.capacity:
			t.evict()
		case held == len(t.slots):
			t.resize(min(max(fewSlots, 2*held), t.capacity))
		}
		obj := changes[i].Object()
		changes[i].at, changes[i].uid, changes[i].version = at, obj.GetUID(), store.Version(obj.GetResourceVersion())
		*t.slot(t.next) = changes[i]
		t.next++
		t.caughtUp = 0
	}
	t.release()
}

// skip notes a list that made more changes than the timeline holds, by count numbers without a
// change. before is the state before the list; deleted has the list's deletions if a reader lags.
func (t *timeline) skip(count int, before snapshot, deleted []event) {
	t.keepPasts(math.MaxUint64, func() snapshot { return before }, nil)
	for t.first < t.next {
		t.evict()
	}
	t.keepUnseen(deleted)
	t.slots = nil
	t.next += uint64(count)
	t.first = t.next
	t.caughtUp = 0
	t.release()
}

// keepPasts gives each reader whose next change is before end the state at its place. later is a
// state after all changes and after coming.
func (t *timeline) keepPasts(end uint64, later func() snapshot, coming []noted) {
	t.slowest = t.next
	pasts := map[uint64]*past{} // handlers that wait for one lock stop at one change
	for _, rd := range t.readers {
		switch {
		case rd.past != nil:
		case rd.next >= end:
			t.slowest = min(t.slowest, rd.next)
		default:
			t.behind++
			if pasts[rd.next] == nil {
				pasts[rd.next] = t.pastAt(rd.next, later(), coming)
			}
			rd.past = pasts[rd.next]
		}
	}
}

// pastAt is the state just before a change that the timeline holds: later without the changes from
// there on, and without coming.
func (t *timeline) pastAt(number uint64, later snapshot, coming []noted) *past {
	p := &past{later: later, was: map[string]store.Entry{}}
	for n := number; n < t.next; n++ {
		p.undo(t.slot(n))
	}
	for i := range coming {
		p.undo(&coming[i])
	}
	return p
}

// evict forgets the oldest change. A deletion outlives it while a reader is behind.
func (t *timeline) evict() {
	if n := t.slot(t.first); t.behind > 0 && n.Type == Deleted && t.first >= t.kept {
		t.deaths.add(death{n.event, n.had, t.first})
	}
	t.first++
}

// keepUnseen keeps those of a list's deletions that a reader behind cannot infer, since the object
// was created after the reader's place.
func (t *timeline) keepUnseen(deleted []event) {
	pasts := map[*past]bool{}
	for _, rd := range t.readers {
		if rd.next < t.next {
			pasts[rd.past] = true
		}
	}
	for _, e := range deleted {
		for p := range pasts {
			if !sameLife(p.at(e.Key), e.Old) {
				// A number before the list's: readers that had read everything do not ask for it.
				t.deaths.add(death{e, e.Old, t.next - 1})
				break
			}
		}
	}
}

// release lets the objects of all changes go once every reader has read them. The changes go, too,
// unless their versions cannot be compared: see holds.
func (t *timeline) release() {
	if t.caughtUp < len(t.readers) || t.first == t.next {
		return
	}
	if _, comparable := t.slot(t.next - 1).version.Compare("1"); comparable {
		used := int(t.next - t.first)
		for ; t.first < t.next; t.first++ {
			*t.slot(t.first) = noted{}
		}
		t.fit(used)
		return
	}
	for t.kept = max(t.kept, t.first); t.kept < t.next; t.kept++ {
		n := t.slot(t.kept)
		n.Old, n.New, n.had = nil, nil, nil
	}
}

const (
	fewSlots  = 8  // an idle informer keeps so many
	oftenWide = 16 // room is given back once it was too wide for so many times
)

// wide is how often in a row most of a buffer stayed empty. With 100 handlers, buffers given back
// at once were two thirds of the bytes that an event allocated, and a fifth of its CPU.
type wide int

// now notes a use of a buffer, and reports whether it should give room back.
func (w *wide) now(used, room int) bool {
	if room <= fewSlots || used > room/4 {
		*w = 0
		return false
	}
	*w = (*w + 1) % oftenWide
	return *w == 0
}

// fit gives half of the slots back if most of them are not needed. So many were used, and none is
// now.
func (t *timeline) fit(used int) {
	if t.wide.now(used, len(t.slots)) {
		t.resize(len(t.slots) / 2)
	}
}

// resize moves the changes held into another number of slots.
func (t *timeline) resize(count int) {
	slots := make([]noted, count)
	for n := t.first; n < t.next; n++ {
		slots[n%uint64(count)] = *t.slot(n)
	}
	t.slots, t.wide = slots, 0
}

// enter adds a reader of the changes to come.
func (t *timeline) enter(rd *reader) {
	rd.next, rd.index = t.next, len(t.readers)
	t.readers = append(t.readers, rd)
	t.caughtUp++
}

// leave removes a reader.
func (t *timeline) leave(rd *reader) {
	last := len(t.readers) - 1
	t.readers[rd.index] = t.readers[last]
	t.readers[rd.index].index = rd.index
	t.readers[last] = nil
	t.readers = t.readers[:last]
	if rd.past != nil {
		t.forgetPast(rd)
	}
	if rd.next == t.next {
		t.caughtUp--
	}
	t.release()
}

// read moves a reader to the end. It appends the changes since the reader's place to into, or
// returns a gap if some are evicted.
func (t *timeline) read(rd *reader, into []told) (events []told, missed *gap) {
	events = into
	if rd.next < t.first {
		missed = t.gapFrom(rd)
	} else {
		events = slices.Grow(into, int(t.next-rd.next))
		for n := rd.next; n < t.next; n++ { // the rest of a noted takes as much space again
			events = append(events, t.slot(n).told)
		}
	}
	if rd.next < t.next {
		t.caughtUp++
	}
	rd.next = t.next
	if rd.past != nil {
		t.forgetPast(rd)
	}
	t.release()
	return events, missed
}

func (t *timeline) gapFrom(rd *reader) *gap {
	g := &gap{before: rd.past, deaths: t.deaths.from(rd.next), complete: t.deaths.lost <= rd.next}
	for n := t.first; n < t.next; n++ {
		if slot := t.slot(n); slot.Type == Deleted {
			g.deaths = append(g.deaths, death{slot.event, slot.had, n})
		}
	}
	return g
}

// forgetPast takes a reader's past away, and the deaths that no other reader needs.
func (t *timeline) forgetPast(rd *reader) {
	rd.past = nil
	t.behind--
	oldest := t.next
	if len(t.deaths.list) > 0 && t.behind > 0 {
		for _, other := range t.readers {
			if other.past != nil {
				oldest = min(oldest, other.next)
			}
		}
	}
	t.deaths.forgetBefore(oldest)
}

// after returns the number of changes from a place on, and the time of the first of them if the
// timeline still has it.
func (t *timeline) after(place uint64) (count uint64, at time.Duration, known bool) {
	if place >= t.next {
		return 0, 0, false
	}
	if place < t.first {
		return t.next - place, 0, false
	}
	return t.next - place, t.slot(place).at, true
}

// holds reports whether a change of key in the timeline satisfies match. It is asked only if
// versions cannot be compared: then changes outlive their readers.
func (t *timeline) holds(key string, match func(kind EventType, uid types.UID, version store.Version) bool) bool {
	for n := t.first; n < t.next; n++ {
		if change := t.slot(n); change.Key == key && match(change.Type, change.uid, change.version) {
			return true
		}
	}
	return false
}

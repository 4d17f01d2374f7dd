package reflector

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/internal/stream"
)

// goal is the request that is due next.
type goal uint8

const (
	listDue  goal = iota // a list, for the sake of plan.cause
	pollDue              // a list that stands in for a watch
	watchDue             // a watch from held.version
	stopped              // none: Run ends with final
)

// machine decides the next step of a reflector. It has no clock, does no I/O and starts nothing:
// next names the step, and ended takes in its outcome. Not safe for concurrent use.
//
// The goal is the machine's state. Each of the four parts keeps one kind of fact, and takes in the
// outcomes that bear on it.
type machine struct {
	goal  goal
	pause pause // before the goal's request
	final error // of the goal stopped

	held    holding     // the version that the store has, and the answers against it
	plan    listPlan    // the list that is due: its cause and its kind
	watches watchHealth // whether watches work here, or lists must stand in for them
	healing healing     // the loss that a relist must heal, and when it may

	backoff     pace.Asker
	stopOnFinal bool
	now         time.Time // when the last request ended
}

// pause is a wait before the goal's request.
type pause struct {
	delay time.Duration
	told  time.Duration // the part of the delay that the server asked for
}

func newMachine(o options, watchLists bool, random func() float64) *machine {
	return &machine{
		plan:        newListPlan(o, watchLists),
		backoff:     pace.Asker{Initial: o.backoffInitial, Limit: o.backoffLimit, Random: random},
		stopOnFinal: o.stopOnFinal,
	}
}

// goOn begins with a watch, from the version held. The server of the earlier run is taken for one
// that sends bookmarks, until its silence says otherwise.
func (m *machine) goOn() {
	m.goal = watchDue
	m.watches.bookmarks = true
}

func (m *machine) next() step {
	if m.pause.delay > 0 && m.goal != stopped {
		p := m.pause
		m.pause = pause{}
		return step{kind: doWait, wait: p.delay, told: p.told}
	}
	switch m.goal {
	case stopped:
		return step{kind: doStop, err: m.final}
	case watchDue:
		return step{kind: doWatch, options: stream.Watch(m.held.version)}
	}
	return m.plan.step(m.goal == pollDue, &m.held, m.now)
}

// ended takes in the outcome of step s, and returns its class.
func (m *machine) ended(s step, o outcome) Class {
	m.now = o.at
	class := Classify(o.err)
	switch {
	case s.kind != doWatch && o.complete:
		m.listed(s, o)
	case s.kind != doWatch:
		switch { // a watch may go on from the state held, and has the loss to heal
		case o.skipped > 0:
			m.healing.lost(Undecodable, o.at)
		case lostBy(class) != "":
			m.healing.lost(class, o.at)
		}
		m.listFailed(s, class, o)
	default:
		return m.watchEnded(class, o)
	}
	return class
}

func (m *machine) listed(s step, o outcome) {
	m.goal = watchDue
	m.held.listed(o.version, o.another && s.cause != Unplaced, o.at)
	m.plan.listed(s.kind, o.at)
	m.watches.listed(s.kind)
	m.healing.listed(o)
	if s.poll {
		m.watches.pollLater(o.at, &m.backoff)
	}
	// A list is life, but lists that no watch follows must not go round and round.
	m.backoff.Alive(m.watches.lists)
	m.watches.lists++
}

func (m *machine) listFailed(s step, class Class, o outcome) {
	switch {
	case m.stopsAt(class, o.err):
		return
	case s.kind == doWatchList && listMayWork(class):
		m.plan.byList, m.watches.failed = true, class // LIST is asked at once
		return
	case class == Expired && m.plan.newer():
		return // and so is the newer state
	}
	m.held.refused(class)
	if o.items > 0 {
		m.plan.brokenOff(s, class)
	}
	m.plan.failed(s, class)
	// The copy is whole up to its version, and the watch may be permitted before the list is.
	if m.goal == pollDue && lostBy(class) == "" {
		m.goal = watchDue
		m.watches.pollAt = o.at.Add(m.backoff.Limit)
	}
	m.wait(class, o.err)
}

func (m *machine) watchEnded(class Class, o outcome) Class {
	class = m.watches.ended(class, o)
	m.held.watched(o)
	m.follow(class, o)
	if m.watches.interrupted(class, o) && m.held.mayHop(o.at) {
		cause := class
		if cause == OK { // which is the cause of the first list alone
			cause = Disconnected
		}
		m.relist(cause)
	}
	if m.healing.begin(o.at) {
		m.relist(m.healing.doubt)
	}
	return class
}

// follow decides the request that comes after a watch, and the wait before it.
func (m *machine) follow(class Class, o outcome) {
	if showsLife(class, o) {
		m.watches.lives()
		m.backoff.Alive(0)
	}
	if m.stopsAt(class, o.err) {
		return
	}
	switch class {
	case OK, Undecodable, StoreError, Unplaced:
	case Disconnected:
		m.resume(class, o.err)
	case Silent:
		// A watch from a version of the future is silent for ever: a probe of the next one, or a
		// list, finds that out.
		if m.watches.tooSilent() {
			m.relist(class)
		}
	case Expired:
		m.relist(class)
		// The version came from a list a moment ago: of the failures, only lists that no living
		// watch followed count.
		if lists := m.watches.lists; lists > 0 {
			m.backoff.Alive(lists - 1)
			m.wait(class, o.err)
		}
	case TooLarge, NotFound: // another resource may come back under the same name
		m.held.refused(class)
		m.relist(class)
		m.wait(class, o.err)
	case Forbidden, Refused, WrongAnswer, ServerError, Unknown:
		if o.contacts > 0 || o.lived >= shortWatch {
			m.resume(class, o.err)
			return
		}
		m.wait(class, o.err)
		m.standIn(class, o.at)
	default:
		m.wait(class, o.err)
	}
}

// standIn lets lists stand in for watches, at the backoff's pace, when watches fail in a way that
// lists may not. Both are asked for again and again, each at its own pace.
func (m *machine) standIn(class Class, at time.Time) {
	// With patience left, the server may not have read its roles yet.
	if m.backoff.Patient() || !m.watches.refused(class) {
		return
	}
	if m.watches.polls == 0 {
		m.watches.pollLater(at, &m.backoff)
	}
	due := m.watches.pollAt.Sub(at)
	if due > m.pause.delay {
		return
	}
	m.relist(class)
	m.goal = pollDue
	if m.pause.told == 0 { // else the server has asked for that delay
		m.pause.delay = max(due, 0)
	}
}

// doubted takes in a doubt that came from beside the watch. OK is none: the list is the proof. The
// list must be the server's newest state.
func (m *machine) doubted(class Class, now time.Time) {
	if m.now = now; class == OK {
		m.relist(Silent)
		m.held.atLeast = ""
		return
	}
	if class == WentBack {
		m.held.refused(class)
		m.relist(class)
		return
	}
	if m.held.atLeast = ""; m.healing.lost(class, now) && m.healing.begin(now) {
		m.relist(class)
	}
}

// relist makes a list due, unless Run ends. A list that stands in for a watch goes on doing that.
func (m *machine) relist(cause Class) {
	m.plan.cause = cause
	if m.goal != stopped && m.goal != pollDue {
		m.goal = listDue
	}
}

// stopsAt reports whether Run ends with this error.
func (m *machine) stopsAt(class Class, err error) bool {
	if m.stopOnFinal && (class == Unauthorized || class == Forbidden || class == NotFound) {
		m.goal, m.final = stopped, err
	}
	return m.goal == stopped
}

// wait delays the next request.
func (m *machine) wait(class Class, err error) {
	told := pace.RetryAfter(err)
	m.pause = pause{delay: m.backoff.Next(answerOf(class), told), told: told}
}

// resume is wait for the end of a watch that lived: the first retry is at once.
func (m *machine) resume(class Class, err error) {
	if pace.RetryAfter(err) == 0 {
		m.pause.delay = m.backoff.Resume()
	}
	if m.pause.delay == 0 {
		m.wait(class, err)
	}
}

// answerOf is what a failure means for the pace of requests.
func answerOf(class Class) pace.Answer {
	switch class {
	case Unreachable:
		return pace.Absent
	case Forbidden, NotFound:
		return pace.Refused
	}
	return pace.Failed
}

// step is one thing to do.
type step struct {
	kind      stepKind
	options   metav1.ListOptions // of a request
	wait      time.Duration
	told      time.Duration // of a wait: the server asked for it
	cause     Class         // of a list: why it is made; OK for the first
	poll      bool          // of a list: it stands in for a watch
	cached    bool          // of a list: its state may be older than the truth
	behind    bool          // of a list: a version older than the one held is taken
	confirmed bool          // of a list: fewer than half of the objects held are taken
	err       error         // to stop with
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
	err      error
	complete bool // a list: the store took the state
	// another: the list is of another history than the content was, so that what is known of
	// versions before it says nothing about those after it.
	another bool
	// version is the newest with its effects in the store afterwards; empty: no news.
	version   string
	contacts  int           // events and bookmarks of a watch
	bookmarks int           // bookmarks alone
	items     int           // of a list
	skipped   int           // of a list: objects that could not be decoded
	lived     time.Duration // from the request to its end
	sent      time.Duration // of a watch: from its sending to its end
	due       bool          // a watch: it lasted as long as the server was asked for, about
	at        time.Time     // when it ended
}

package status

import (
	"cmp"
	"slices"
	"time"

	"github.com/tributary-go/tributary/reflector"
)

// Version is the version of [Document]: fields may be added under it, and none changes.
const Version = "v1"

const (
	maxCopies  = 1000
	maxReaders = 20
	// late is the lag of a reader that people should see.
	late = 10 * time.Second
)

// Document is the state of everything that is tracked, at one moment.
type Document struct {
	Version string    `json:"version"`
	Title   string    `json:"title"`
	At      time.Time `json:"at"`
	// ProgramVersion is the version of the program's main module; (devel) if the build noted none.
	ProgramVersion string `json:"programVersion"`
	// StartedAt is when the program began.
	StartedAt time.Time `json:"startedAt"`
	// HeapBytes is the size of the live objects of the whole program.
	HeapBytes uint64 `json:"heapBytes"`
	// Copies are ordered: the worst first, then by name.
	Copies []Copy `json:"copies"`
	// Hidden is the number of copies beyond the first 1,000.
	Hidden int `json:"hidden,omitempty"`
}

// State is the health of a cache in one word: that of its verdict, and of its present failures and
// readers.
type State = reflector.State

// The states, from the worst on.
const (
	Wrong    = reflector.StateWrong
	Stopped  = reflector.StateStopped
	Stale    = reflector.StateStale
	Failing  = reflector.StateFailing
	Restored = reflector.StateRestored
	Syncing  = reflector.StateSyncing
	// Late: the cache is healthy, and a reader is more than 10 s behind it.
	Late   State = "late"
	Synced       = reflector.StateSynced
)

var states = []State{Wrong, Stopped, Stale, Failing, Restored, Syncing, Late, Synced}

// stateOf is the state of a verdict by its class; empty is a healthy cache.
func stateOf(class string) State {
	return reflector.Verdict{Class: cmp.Or(reflector.Class(class), reflector.OK)}.State()
}

// worse reports whether a state is worse than another one. One that the page does not know is the
// worst.
func worse(a, b State) bool { return slices.Index(states, a) < slices.Index(states, b) }

// Copy is one copy: a reflector, an informer with its reflector, a source of pods, a watch cache,
// or objects that are followed by name. A controller is shown as one, too: its events are calls,
// and its readers the keys that wait.
type Copy struct {
	Name string `json:"name"`
	// Kind is "reflector", "informer", "controller", "source", "watch cache" or "references".
	Kind  string `json:"kind"`
	State State  `json:"state"`
	// Since is the beginning of State. If the copy does not know it, it is when the page saw the
	// state first. Stale copies were right then for the last time.
	Since time.Time `json:"since"`
	// NotRight is the class of the copy's verdict; empty while it is right, whatever its age.
	NotRight string `json:"notRight,omitempty"`
	// Classes are the classes of the verdict and of the present problems, Causes their texts, and
	// Advice the remedies.
	Classes []string `json:"classes,omitempty"`
	Causes  []string `json:"causes,omitempty"`
	Advice  []string `json:"advice,omitempty"`
	// Commands are lines for a shell that carry an advice out.
	Commands []string `json:"commands,omitempty"`
	Objects  int      `json:"objects"`
	// Names and Watches are those of references. Names of which no object exists count.
	Names   int `json:"names,omitempty"`
	Watches int `json:"watches,omitempty"`
	// ProvenAt is the moment of which the copy is proven to be the truth: by its reflector, or by
	// the last look at a file or URL. For references it is the last time that each followed name
	// was heard of. A watch cache without an upstream has none.
	ProvenAt time.Time `json:"provenAt,omitzero"`
	// LastContact is when the server, file or URL was last heard, which proves nothing.
	LastContact time.Time `json:"lastContact,omitzero"`
	// LastEvent is when the last object came.
	LastEvent time.Time `json:"lastEvent,omitzero"`
	// RetryAt is when the next request is made, if one is waited for.
	RetryAt time.Time `json:"retryAt,omitzero"`
	// Events counts the events since the start, and Hour has those of each of the last 60 minutes,
	// the newest last. Hour is empty without [Handler.Run].
	Events          int     `json:"events"`
	EventsPerSecond float64 `json:"eventsPerSecond"`
	Hour            []int   `json:"hour,omitempty"`
	// ReceivedBytes counts the bytes of objects on the wire. SharedBytes of them were equal to
	// parts that were decoded before, and were not decoded again. Both are zero if the copy does
	// not know.
	ReceivedBytes uint64 `json:"receivedBytes,omitempty"`
	SharedBytes   uint64 `json:"sharedBytes,omitempty"`
	// HistoryBytes is the size of the past changes that a watch cache keeps, as it estimates it.
	HistoryBytes uint64 `json:"historyBytes,omitempty"`
	// Readers are handlers, the reader of Updates, or all watchers of a watch cache. The one that
	// is furthest behind comes first.
	Readers       []Reader `json:"readers,omitempty"`
	HiddenReaders int      `json:"hiddenReaders,omitempty"`
	// CutWatchers counts the watchers of a watch cache that were cut, since they read too slowly.
	CutWatchers int `json:"cutWatchers,omitempty"`
	// Drift is the number of objects that differed from the server's at the last verification; nil
	// if there was none. CanVerify: a POST verifies the copy, see [Handler.Verify].
	Drift     *int `json:"drift,omitempty"`
	CanVerify bool `json:"canVerify,omitempty"`

	causes                  []error // of which Causes are the texts
	synced, restored, stale bool
	reflected               bool      // the copy has a reflector
	since                   time.Time // of the trouble, as the copy knows it
	delivered, waited       float64   // events of which a watch cache measured the lag, and seconds
}

// Change is a change of one object, without the object.
type Change struct {
	// Number counts the changes since the first viewer came.
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	Copy   string    `json:"copy"`
	// Op is "added", "modified" or "deleted".
	Op string `json:"op"`
	// Key is the namespace, a slash and the name; or the name alone.
	Key string `json:"key"`

	resource string
	old, new any // nil without [Handler.Differences]
}

// Reader is a reader of a copy.
type Reader struct {
	Name string `json:"name"`
	// Behind is the number of events or states that it has not read.
	Behind int `json:"behind"`
	// LagSeconds is how long the oldest of them has waited. For watchers it is how long events took
	// to reach them lately, in the mean.
	LagSeconds float64 `json:"lagSeconds"`
	// Count is the number of watchers that stand behind one name; 0 for every other reader.
	Count int `json:"count,omitempty"`
	// Failed: it has ended with a panic.
	Failed bool `json:"failed,omitempty"`
}

// settle finds the state once all samples have been added.
func (c *Copy) settle(now time.Time, staleAfter time.Duration) {
	slices.SortFunc(c.Readers, func(a, b Reader) int {
		return cmp.Or(cmp.Compare(b.LagSeconds, a.LagSeconds), cmp.Compare(a.Name, b.Name))
	})
	isLate := len(c.Readers) > 0 && c.Readers[0].LagSeconds > late.Seconds()
	if n := len(c.Readers); n > maxReaders {
		c.Readers, c.HiddenReaders = c.Readers[:maxReaders], n-maxReaders
	}
	if c.Kind == kindSource && !c.reflected {
		c.ProvenAt = c.LastContact
	} else if !c.ProvenAt.IsZero() && now.Sub(c.ProvenAt) > staleAfter {
		c.stale = true
	}
	c.State = c.judged(isLate)
	c.explain()
}

// judged is the worst of the states that are true of the cache.
func (c *Copy) judged(isLate bool) State {
	state := stateOf(c.NotRight)
	for _, s := range []struct {
		is   bool
		then State
	}{
		{c.synced && c.stale, Stale},
		{slices.ContainsFunc(c.Classes, func(class string) bool { return class != c.NotRight }), Failing},
		{c.restored, Restored},
		{!c.synced, Syncing},
		{isLate, Late},
	} {
		if s.is && worse(s.then, state) {
			state = s.then
		}
	}
	return state
}

// explain adds the advice.
func (c *Copy) explain() {
	switch {
	case c.State == Synced:
		c.Causes = nil // of a probe that failed lately, and that will fail again if it matters
	case c.State == Stale && c.synced && c.stale:
		c.since = c.ProvenAt
		c.show(string(reflector.Stale))
	}
	if c.NotRight != "" && (stateOf(c.NotRight) != Syncing || len(c.Classes) == 0) {
		c.show(c.NotRight) // unless another class says why there is no first state
	}
	slices.Sort(c.Classes)
	slices.Sort(c.Causes)
	for _, class := range c.Classes {
		lines, commands := adviceFor(class, c.causes)
		c.Advice, c.Commands = append(c.Advice, lines...), append(c.Commands, commands...)
	}
}

// sorted is the copies of a document.
func (t table) sorted() (copies []Copy, hidden int) {
	for _, c := range t {
		copies = append(copies, *c)
	}
	slices.SortFunc(copies, func(a, b Copy) int {
		return cmp.Or(cmp.Compare(slices.Index(states, a.State), slices.Index(states, b.State)), cmp.Compare(a.Name, b.Name))
	})
	if n := len(copies); n > maxCopies {
		return copies[:maxCopies], n - maxCopies
	}
	return copies, 0
}

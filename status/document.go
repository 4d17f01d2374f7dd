package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tributary-go/tributary/metrics"
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
	At      time.Time `json:"at"`
	// HeapBytes is what the live objects of the whole program take.
	HeapBytes uint64 `json:"heapBytes"`
	// Copies are ordered: the worst first, then by name.
	Copies []Copy `json:"copies"`
	// Hidden is the number of copies beyond the first 1,000.
	Hidden int `json:"hidden,omitempty"`
}

// State is the health of a copy in one word.
type State string

// The states, from the worst on.
const (
	// Stale: nothing was heard for too long.
	Stale State = "stale"
	// Failing: something is wrong now. The copy keeps its last good state.
	Failing State = "failing"
	// Restored: the state is a checkpoint's, or was read from a cache, and is not proven yet.
	Restored State = "restored"
	// Syncing: the first state is not complete.
	Syncing State = "syncing"
	// Late: the copy is well, and a reader is more than 10 s behind it.
	Late State = "late"
	// Synced: all is well.
	Synced State = "synced"
)

var states = []State{Stale, Failing, Restored, Syncing, Late, Synced}

// Copy is one copy: a reflector, an informer with its reflector, or a source of pods.
type Copy struct {
	Name string `json:"name"`
	// Kind is "reflector", "informer" or "source".
	Kind  string `json:"kind"`
	State State  `json:"state"`
	// Classes are the classes of the present problems, Causes their texts, and Advice what to do.
	Classes []string `json:"classes,omitempty"`
	Causes  []string `json:"causes,omitempty"`
	Advice  []string `json:"advice,omitempty"`
	Objects int      `json:"objects"`
	// LastContact is when the server, file or URL was last heard.
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
	// Readers are handlers, or the reader of Updates. The one that is furthest behind comes first.
	Readers       []Reader `json:"readers,omitempty"`
	HiddenReaders int      `json:"hiddenReaders,omitempty"`

	synced, unproven, stale bool
}

// Reader is a reader of a copy.
type Reader struct {
	Name string `json:"name"`
	// Behind is the number of events or states that it has not read.
	Behind int `json:"behind"`
	// LagSeconds is how long the oldest of them has waited.
	LagSeconds float64 `json:"lagSeconds"`
	// Failed: it has ended with a panic.
	Failed bool `json:"failed,omitempty"`
}

// table is the copies in the making, by name.
type table map[string]*Copy

func (t table) copy(name, kind string) *Copy {
	c := t[name]
	if c == nil {
		c = &Copy{Name: name, Kind: kind}
		t[name] = c
	}
	return c
}

func (c *Copy) reader(name string) *Reader {
	i := slices.IndexFunc(c.Readers, func(r Reader) bool { return r.Name == name })
	if i < 0 {
		i = len(c.Readers)
		c.Readers = append(c.Readers, Reader{Name: name})
	}
	return &c.Readers[i]
}

// add takes a sample. Metrics that the page does not show are passed over.
func (t table) add(s metrics.Sample) {
	family, name, ok := strings.Cut(strings.TrimPrefix(s.Metric.Name, "tributary_"), "_")
	if !ok || len(s.Labels) == 0 {
		return
	}
	switch family {
	case "reflector":
		t.copy(s.Labels[0], "reflector").reflector(name, s)
	case "informer":
		c := t.copy(s.Labels[0], "informer")
		c.Kind = "informer"
		c.informer(name, s)
	case "sources":
		if len(s.Labels) > 1 { // else it is about all sources
			c := t.copy(s.Labels[0]+"/"+s.Labels[1], "source")
			c.Kind = "source"
			c.source(name, s)
		}
	}
}

func (c *Copy) reflector(name string, s metrics.Sample) {
	switch name {
	case "synced":
		c.synced = s.Value > 0
	case "may_be_old":
		c.unproven = c.unproven || s.Value > 0
	case "failing":
		c.class(s.Labels[1])
	case "last_contact_timestamp_seconds":
		c.LastContact = timeOf(s)
	case "last_event_timestamp_seconds":
		c.LastEvent = timeOf(s)
	case "retry_timestamp_seconds":
		c.RetryAt = timeOf(s)
	case "events_total":
		c.Events = int(s.Value)
	}
}

func (c *Copy) informer(name string, s metrics.Sample) {
	switch name {
	case "objects":
		c.Objects = int(s.Value)
	case "handler_lag_events":
		c.reader(s.Labels[1]).Behind = int(s.Value)
	case "handler_lag_seconds":
		c.reader(s.Labels[1]).LagSeconds = s.Value
	case "handlers_failed":
		c.reader(s.Labels[1]).Failed = s.Value > 0
	}
}

func (c *Copy) source(name string, s metrics.Sample) {
	const reader = "Updates"
	switch name {
	case "seen":
		c.synced = s.Value > 0
	case "restored":
		c.unproven = c.unproven || s.Value > 0
	case "stale":
		c.stale = s.Value > 0
	case "problems":
		c.class(s.Labels[2])
	case "pods":
		c.Objects = int(s.Value)
	case "last_contact_timestamp_seconds":
		c.LastContact = timeOf(s)
	case "last_set_timestamp_seconds":
		c.LastEvent = timeOf(s)
	case "reader_pending_states":
		c.reader(reader).Behind = int(s.Value)
	case "reader_lag_seconds":
		c.reader(reader).LagSeconds = s.Value
	case "updates_total":
		c.Events += int(s.Value)
	}
}

func (c *Copy) class(class string) {
	if !slices.Contains(c.Classes, class) {
		c.Classes = append(c.Classes, class)
	}
}

func timeOf(s metrics.Sample) time.Time { return time.UnixMilli(int64(s.Value * 1000)).UTC() }

// settle finds the state once all samples have been added.
func (c *Copy) settle(now time.Time, staleAfter time.Duration) {
	slices.Sort(c.Classes)
	slices.Sort(c.Causes)
	for _, class := range c.Classes {
		if text := advice[class]; text != "" {
			c.Advice = append(c.Advice, text)
		}
	}
	slices.SortFunc(c.Readers, func(a, b Reader) int {
		return cmp.Or(cmp.Compare(b.LagSeconds, a.LagSeconds), cmp.Compare(a.Name, b.Name))
	})
	isLate := len(c.Readers) > 0 && c.Readers[0].LagSeconds > late.Seconds()
	if n := len(c.Readers); n > maxReaders {
		c.Readers, c.HiddenReaders = c.Readers[:maxReaders], n-maxReaders
	}
	silent := c.Kind != "source" && !c.LastContact.IsZero() && now.Sub(c.LastContact) > staleAfter
	switch {
	case c.synced && (c.stale || silent):
		c.State = Stale
	case len(c.Classes) > 0:
		c.State = Failing
	case c.unproven:
		c.State = Restored
	case !c.synced:
		c.State = Syncing
	case isLate:
		c.State = Late
	default:
		c.State = Synced
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

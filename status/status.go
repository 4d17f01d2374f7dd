package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-go/tributary/internal/null"
	reports "github.com/tributary-go/tributary/metrics"
)

const (
	// period is the least time between two looks, which all viewers share.
	period = time.Second
	// unwatched is the time between two looks that are made without a viewer.
	unwatched = 10 * time.Second
	// defaultStaleAfter is longer than the proof of a healthy copy is ever old: two minutes.
	defaultStaleAfter = 3 * time.Minute
)

// Handler is the page. The zero value is ready to use; set its fields before use. All methods are
// safe for concurrent use.
type Handler struct {
	// Title names the program on the page. Empty is the name of its executable file.
	Title string
	// StaleAfter is how old the proof of a reflector's copy may be. Sources have bounds of their
	// own. Zero is three minutes.
	StaleAfter time.Duration
	// Differences lets a viewer ask for the difference that a change made, as an RFC 7386 merge
	// patch. That shows values of objects, so the default is names alone. Secrets have none,
	// whatever their Go type, and neither have objects of which neither the source nor they
	// themselves say what they are.
	Differences bool
	// Verify lets a viewer compare an informer's copy with its server, by a POST from the page
	// itself or from a client that is no browser. Each costs the server a LIST; there is one at a
	// time. The default is a page that is read-only.
	Verify bool

	pace time.Duration // period in tests; zero is the constant

	verifying atomic.Bool
	origins   http.CrossOriginProtection
	tail      tail
	looking   sync.Mutex // serialises looks

	mu      sync.Mutex // guards the fields below
	tracked map[*tracked]bool
	last    *look              // the last one
	before  map[string]counted // of the look before the last
	since   map[string]moment  // when each copy came into its state
	history map[string][]int   // events of each minute, by copy
	minutes map[string]int     // events at the end of the last minute
}

type tracked struct {
	name     string
	reporter reports.Reporter
}

// counted has the counters of a copy at a time.
type counted struct {
	events            int
	delivered, waited float64
	at                time.Time
}

// moment is when a copy came into a state.
type moment struct {
	state State
	at    time.Time
}

// Track shows a reflector, informer, set, union, controller, sources, references by name, watch
// cache or apiserver.Server under a name, which for a set does not matter. The returned function
// ends that. Two copies of one name are shown as one.
func (h *Handler) Track(name string, r reports.Reporter) (untrack func()) {
	if null.Is(r) {
		panic(fmt.Sprintf("status: Track: the reporter of %q is nil (%T)", name, r))
	}
	one := &tracked{name, r}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tracked == nil {
		h.tracked = map[*tracked]bool{}
	}
	h.tracked[one] = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.tracked, one)
	}
}

// all is everything that is tracked.
func (h *Handler) all() []*tracked {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.tracked))
}

// Run looks every ten seconds until ctx ends, which is no error: so the page knows since when a
// copy is in its state, and has the curve of the last hour. It blocks. A second Run at a time is an
// error.
func (h *Handler) Run(ctx context.Context) error {
	if !h.beginRun() {
		return errors.New("status: Run was called twice")
	}
	defer h.endRun()
	ticker := time.NewTicker(unwatched)
	defer ticker.Stop()
	h.minute(h.collect(time.Now()))
	for looks := 1; ; looks++ {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		now := h.collect(time.Now())
		if looks%int(time.Minute/unwatched) == 0 {
			h.minute(now)
		}
	}
}

func (h *Handler) beginRun() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.history != nil {
		return false
	}
	h.history, h.minutes = map[string][]int{}, map[string]int{}
	return true
}

func (h *Handler) endRun() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.history, h.minutes = nil, nil
}

// minute ends a minute of the curve.
func (h *Handler) minute(now Document) {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := map[string]int{}
	for _, c := range now.Copies {
		events[c.Name] = c.Events
		if before, known := h.minutes[c.Name]; known {
			hour := append(h.history[c.Name], max(0, c.Events-before))
			h.history[c.Name] = hour[max(0, len(hour)-60):]
		}
	}
	h.minutes = events
	maps.DeleteFunc(h.history, func(name string, _ []int) bool { _, there := events[name]; return !there })
}

// Document is the present state, at most a second old.
func (h *Handler) Document() Document { return h.look().Document }

// look is a document, and the rows for which a viewer has asked. All viewers share it.
type look struct {
	Document
	mu   sync.Mutex               // guards rows
	rows map[string]template.HTML // by the name of the copy
}

// period is the least time between two looks.
func (h *Handler) period() time.Duration { return cmp.Or(h.pace, period) }

func (h *Handler) look() *look {
	h.looking.Lock()
	defer h.looking.Unlock()
	now := time.Now()
	h.mu.Lock()
	last := h.last
	h.mu.Unlock()
	if last != nil && now.Sub(last.At) < h.period() {
		return last
	}
	return h.show(h.collect(now))
}

// show adds the rates and the curves, and keeps the document for other viewers.
func (h *Handler) show(d Document) *look {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := map[string]counted{}
	for i := range d.Copies {
		c := &d.Copies[i]
		if before, known := h.before[c.Name]; known && d.At.After(before.at) {
			c.EventsPerSecond = float64(max(0, c.Events-before.events)) / d.At.Sub(before.at).Seconds()
			if n := c.delivered - before.delivered; n > 0 {
				c.reader(watchers).LagSeconds = max(0, c.waited-before.waited) / n
			}
		}
		counts[c.Name] = counted{c.Events, c.delivered, c.waited, d.At}
		c.Hour = slices.Clone(h.history[c.Name])
	}
	h.before = counts
	h.last = &look{Document: d, rows: map[string]template.HTML{}}
	return h.last
}

// collect asks everything that is tracked. No lock is held meanwhile.
func (h *Handler) collect(now time.Time) Document {
	rows := table{}
	for _, one := range h.all() {
		samples, known := 0, false
		for sample := range one.reporter.Samples(one.name) {
			c := rows.add(sample)
			samples, known = samples+1, known || c != nil
			if c != nil && h.Verify && c.Kind == kindInformer {
				c.CanVerify = c.CanVerify || canVerify(one.reporter)
			}
		}
		if samples > 0 && !known {
			rows.unknown(one)
		}
		if explainer, ok := one.reporter.(reports.Explainer); ok {
			for name, cause := range explainer.Causes(one.name) {
				if c := rows[name]; c != nil {
					c.Causes, c.causes = append(c.Causes, cause.Error()), append(c.causes, cause)
				}
			}
		}
	}
	staleAfter := cmp.Or(h.StaleAfter, defaultStaleAfter)
	for _, c := range rows {
		c.settle(now, staleAfter)
	}
	h.note(rows, now)
	d := Document{
		Version: Version, Title: cmp.Or(h.Title, filepath.Base(os.Args[0])), At: now.UTC(),
		ProgramVersion: programVersion(), StartedAt: started, HeapBytes: heap(),
	}
	d.Copies, d.Hidden = rows.sorted()
	return d
}

// note says since when each copy is in its state.
func (h *Handler) note(rows table, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	since := map[string]moment{}
	for name, c := range rows {
		m, known := h.since[name]
		if !known || m.state != c.State {
			m = moment{c.State, now.UTC()}
		}
		since[name] = m
		c.Since = m.at
		if !c.since.IsZero() && (c.State == Wrong || c.State == Stale || c.State == Failing) {
			c.Since = c.since
		}
	}
	h.since = since
}

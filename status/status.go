package status

import (
	"context"
	"errors"
	"maps"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	reports "github.com/tributary-go/tributary/metrics"
)

const (
	// look is the least time between two looks, which all viewers share.
	look = time.Second
	// defaultStaleAfter is longer than a healthy server is ever silent: it sends a bookmark about
	// once a minute.
	defaultStaleAfter = 3 * time.Minute
)

// Handler is the page. The zero value is ready to use. All methods are safe for concurrent use.
type Handler struct {
	// StaleAfter is for how long a reflector may be silent. Sources have bounds of their own. Zero
	// is three minutes. Set it before use.
	StaleAfter time.Duration

	viewers viewers
	looking sync.Mutex // serialises looks

	mu      sync.Mutex // guards what follows
	tracked map[*tracked]bool
	last    Document           // of the last look
	before  map[string]counted // of the look before the last
	history map[string][]int   // events of each minute, by copy
	minutes map[string]int     // events at the end of the last minute
}

type tracked struct {
	name     string
	reporter reports.Reporter
}

// counted is a number of events at a time.
type counted struct {
	events int
	at     time.Time
}

// Track shows a reflector, informer, set, union or sources under a name, which for a set does not
// matter. The returned function ends that. Two copies of one name are shown as one.
func (h *Handler) Track(name string, r reports.Reporter) (untrack func()) {
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

// Run counts the events of each minute until ctx ends, which is no error. It blocks. Without it the
// page has no curve. A second Run at a time is an error.
func (h *Handler) Run(ctx context.Context) error {
	if !h.beginRun() {
		return errors.New("status: Run was called twice")
	}
	defer h.endRun()
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	h.minute()
	for {
		select {
		case <-ticker.C:
			h.minute()
		case <-ctx.Done():
			return nil
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
func (h *Handler) minute() {
	now := h.collect(time.Now())
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
func (h *Handler) Document() Document {
	h.looking.Lock()
	defer h.looking.Unlock()
	now := time.Now()
	h.mu.Lock()
	last := h.last
	h.mu.Unlock()
	if !last.At.IsZero() && now.Sub(last.At) < look {
		return last
	}
	return h.show(h.collect(now))
}

// show adds the rates and the curves, and keeps the document for other viewers.
func (h *Handler) show(d Document) Document {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts := map[string]counted{}
	for i := range d.Copies {
		c := &d.Copies[i]
		if before, known := h.before[c.Name]; known && d.At.After(before.at) {
			c.EventsPerSecond = float64(max(0, c.Events-before.events)) / d.At.Sub(before.at).Seconds()
		}
		counts[c.Name] = counted{c.Events, d.At}
		c.Hour = slices.Clone(h.history[c.Name])
	}
	h.before, h.last = counts, d
	return d
}

// collect asks everything that is tracked. No lock is held meanwhile.
func (h *Handler) collect(now time.Time) Document {
	h.mu.Lock()
	all := slices.Collect(maps.Keys(h.tracked))
	h.mu.Unlock()
	rows := table{}
	for _, one := range all {
		for sample := range one.reporter.Samples(one.name) {
			rows.add(sample)
		}
		if explainer, ok := one.reporter.(reports.Explainer); ok {
			for name, cause := range explainer.Causes(one.name) {
				if c := rows[name]; c != nil {
					c.Causes = append(c.Causes, cause.Error())
				}
			}
		}
	}
	staleAfter := h.StaleAfter
	if staleAfter == 0 {
		staleAfter = defaultStaleAfter
	}
	for _, c := range rows {
		c.settle(now, staleAfter)
	}
	d := Document{Version: Version, At: now.UTC(), HeapBytes: heap()}
	d.Copies, d.Hidden = rows.sorted()
	return d
}

func heap() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

package status

import (
	"bytes"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	reports "github.com/tributary-go/tributary/metrics"
)

const (
	// maxChanges bounds the changes that are kept.
	maxChanges = 200
	// maxTold bounds the changes that a viewer is told at a time: a person reads no more.
	maxTold = 30
	// maxDifference bounds a difference, in bytes.
	maxDifference = 64 << 10
)

// tail has the last changes of everything that is tracked, while there is a viewer. All viewers
// share it. Without a viewer it holds nothing.
type tail struct {
	mu      sync.Mutex // guards the fields below
	viewers int
	follows map[*tracked]func() iter.Seq[reports.Change] // nil for a reporter without changes
	at      time.Time                                    // of the last look
	told    int                                          // the number of the newest change
	last    []Change                                     // the oldest first, up to twice maxChanges
}

// join adds a viewer, if there is room. The first viewer sees the changes from now on; told is the
// number before the first change that a later one sees.
func (t *tail) join(h *Handler) (told int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.viewers == maxViewers {
		return 0, false
	}
	t.viewers++
	t.lookLocked(h)
	return t.told - min(len(t.last), maxTold), true
}

// leave takes a viewer away. The last one takes everything.
func (t *tail) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.viewers--; t.viewers == 0 {
		t.follows, t.last, t.at = nil, nil, time.Time{}
	}
}

// after returns the changes after a number that are kept, and the number of the newest one.
func (t *tail) after(h *Handler, number int) (changes []Change, newest int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookLocked(h)
	n := min(t.told-number, len(t.last), maxTold)
	return slices.Clone(t.last[len(t.last)-n:]), t.told
}

// lookLocked asks everything that is tracked for its changes, once in a period.
func (t *tail) lookLocked(h *Handler) {
	now := time.Now()
	if now.Sub(t.at) < h.period() {
		return
	}
	t.at = now
	follows := map[*tracked]func() iter.Seq[reports.Change]{}
	for _, one := range h.all() {
		follow, known := t.follows[one]
		if follower, ok := one.reporter.(reports.Follower); !known && ok {
			follow = follower.Follow(one.name)
		}
		follows[one] = follow
		if follow == nil {
			continue
		}
		for c := range follow() {
			t.noteLocked(c, now, h.Differences)
		}
	}
	t.follows = follows
}

// noteLocked keeps a change, and forgets the oldest one.
func (t *tail) noteLocked(c reports.Change, now time.Time, keepObjects bool) {
	t.told++
	change := Change{Number: t.told, At: now.UTC(), Copy: printable(c.Copy), Op: opOf(c), Key: printable(c.Key)}
	if keepObjects {
		change.resource, change.old, change.new = c.Resource, c.Old, c.New
	}
	if len(t.last) == 2*maxChanges {
		t.last = append(t.last[:0], t.last[maxChanges:]...)
	}
	t.last = append(t.last, change)
}

func opOf(c reports.Change) string {
	switch {
	case c.Old == nil:
		return "added"
	case c.New == nil:
		return "deleted"
	}
	return "modified"
}

// find is a change by its number, unless it is forgotten.
func (t *tail) find(number int) (Change, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.last {
		if c.Number == number {
			return c, true
		}
	}
	return Change{}, false
}

// serveDifference answers a request for the difference of a change, by its number.
func (h *Handler) serveDifference(w http.ResponseWriter, number string) {
	if !h.Differences {
		http.Error(w, "this page shows no differences", http.StatusForbidden)
		return
	}
	n, _ := strconv.Atoi(number) // changes count from 1
	change, ok := h.tail.find(n)
	if !ok {
		http.Error(w, "the change is forgotten: the page keeps the last changes only, and only while somebody looks", http.StatusNotFound)
		return
	}
	patch, err := change.difference()
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	var body bytes.Buffer
	if json.Indent(&body, patch, "", "  ") != nil {
		body.Write(patch)
	}
	w.Header().Set("Content-Type", "application/merge-patch+json")
	_, _ = w.Write(body.Bytes())
}

// Package histories judges what readers of a collection are told: whether it is ordered, unique,
// atomic, reliable, resumable and bookmarkable, as etcd defines these properties. A reader is
// recorded at one of three places: [RecordSource] records the lists and events of its source,
// [RecordStore] the writes of a reflector into its store, and [RecordHandler] the calls of an event
// handler, of client-go's informers too. Package e2e/robustness compares the verdicts with those of
// etcd's own validators.
package histories

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// History is everything that one reader was told of a collection, in order. [RecordSource],
// [RecordStore] and [RecordHandler] record a history; [Check] judges it. It names objects by
// key and resource version alone.
type History struct {
	// Reader names the reader in errors.
	Reader string
	// Streams are in the order in which the reader was told them.
	Streams []Stream
}

// Stream is one piece of a history: a state, the changes after a version, or both.
type Stream struct {
	// Listed is the state that begins the stream; nil for a watch that resumes.
	Listed *State
	// After is the resource version that the changes follow. Empty: that of Listed.
	After string
	// Told are the changes and bookmarks.
	Told []Change
}

// State is a whole collection as a reader was told of it.
type State struct {
	// ResourceVersion is the version of the state. It is empty if the reader does not know it, as a
	// handler does not: then the state may be that of any version.
	ResourceVersion string
	// Objects maps keys to resource versions.
	Objects map[string]string
}

// Change is one write to a collection, or a bookmark.
type Change struct {
	// Type is watch.Added, watch.Modified, watch.Deleted or watch.Bookmark.
	Type watch.EventType
	// Key is "namespace/name" or "name" in cluster scope; empty for a bookmark.
	Key string
	// ResourceVersion is the version that the write made. For a bookmark, it is the version up to
	// which the reader has been told everything.
	ResourceVersion string
}

// Recording is a [History] in the making. All methods are safe for concurrent use.
type Recording struct {
	mu      sync.Mutex // guards the next fields
	history History

	// Used only for a handler.
	held     map[string]string
	inferred bool // a run of inferred events is under way
}

// History returns the record so far. Call it when the reader can be told nothing more,
// such as after its Run has returned: a list in flight is left out.
func (r *Recording) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settleLocked()
	h := History{Reader: r.history.Reader, Streams: slices.Clone(r.history.Streams)}
	for i := range h.Streams {
		h.Streams[i].Told = slices.Clone(h.Streams[i].Told)
	}
	return h
}

// Bookmark notes a promise that the reader has been told everything up to resourceVersion, such as
// a handler's lag of zero. Bookmarks of stores and sources are recorded without it.
//
// It does nothing if the reader has been told of a newer change since, or if the last event was
// inferred: more events of the same state may follow.
func (r *Recording) Bookmark(resourceVersion string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inferred || len(r.history.Streams) == 0 {
		return
	}
	told := r.history.Streams[len(r.history.Streams)-1].Told
	if len(told) > 0 && newer(told[len(told)-1].ResourceVersion, resourceVersion) {
		return
	}
	r.toldLocked(Change{Type: watch.Bookmark, ResourceVersion: resourceVersion})
}

// settleLocked ends a run of inferred events: the state that they led to begins a stream.
func (r *Recording) settleLocked() {
	if r.inferred {
		r.inferred = false
		r.beginLocked(Stream{Listed: &State{Objects: maps.Clone(r.held)}})
	}
}

func (r *Recording) beginLocked(s Stream) { r.history.Streams = append(r.history.Streams, s) }

func (r *Recording) toldLocked(c Change) {
	last := &r.history.Streams[len(r.history.Streams)-1]
	last.Told = append(last.Told, c)
}

// begin returns the number of the new stream.
func (r *Recording) begin(s Stream) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginLocked(s)
	return len(r.history.Streams) - 1
}

func (r *Recording) told(stream int, c Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.history.Streams[stream]
	s.Told = append(s.Told, c)
}

// Writes are the writes to a collection of this process: the truth by which [Check] judges readers.
type Writes struct {
	mu      sync.Mutex
	changes []Change
}

// Follow keeps all writes to a collection. Call it before the first of them.
func Follow[T store.Object](origin interface {
	OnChange(func(listwatch.Event[T]))
}) *Writes {
	w := &Writes{}
	origin.OnChange(func(e listwatch.Event[T]) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changes = append(w.changes, changeOf(e))
	})
	return w
}

// Changes are the writes so far, in order.
func (w *Writes) Changes() []Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Change{}, w.changes...) // Check takes nil for unknown
}

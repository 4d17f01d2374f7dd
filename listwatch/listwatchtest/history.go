package listwatchtest

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// History is all that one reader was told of a collection, in order. [RecordSource], [RecordStore]
// and [RecordHandler] record one; [CheckHistory] judges it. Objects appear by key and resource
// version alone.
type History struct {
	// Reader names the reader in errors.
	Reader string
	// Streams are what the reader was told, one after the other.
	Streams []Stream
}

// Stream is what a reader was told in one piece: a state, the changes after a version, or both.
type Stream struct {
	// Listed is the state that the stream begins with; nil for a watch that goes on.
	Listed *State
	// After is the resource version after which the changes follow. Empty: that of Listed.
	After string
	// Told are the changes and bookmarks.
	Told []Change
}

// State is a whole collection as a reader was told of it.
type State struct {
	// ResourceVersion is the version of the state. It is empty if the reader was not told it, as a
	// handler is not: then any version will do at which the collection was this state.
	ResourceVersion string
	// Objects are the resource versions by key.
	Objects map[string]string
}

// Change is one write to a collection, or a bookmark.
type Change struct {
	// Type is watch.Added, watch.Modified, watch.Deleted or watch.Bookmark.
	Type watch.EventType
	// Key is "namespace/name" or "name" in cluster scope; empty for a bookmark.
	Key string
	// ResourceVersion is the version that the write made; of a bookmark, the version up to which the
	// reader has been told everything.
	ResourceVersion string
}

// Recording is a [History] in the making. All methods are safe for concurrent use.
type Recording struct {
	mu      sync.Mutex // guards what follows
	history History

	// Of a handler.
	held     map[string]string
	inferred bool // a run of inferred events is under way
}

// History returns what has been recorded so far. Take it when the reader has nothing more to be
// told, such as after its Run has returned: a list under way is not in it.
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

// Bookmark notes that something promised the reader that it has been told everything up to
// resourceVersion, such as a handler of no lag. Bookmarks of stores and sources are recorded by
// themselves. It does nothing if the reader has been told of a newer change since, or if the last
// event was inferred: more may follow of the same state.
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

// toldLocked adds to the last stream.
func (r *Recording) toldLocked(c Change) {
	last := &r.history.Streams[len(r.history.Streams)-1]
	last.Told = append(last.Told, c)
}

// begin begins a stream and returns its number.
func (r *Recording) begin(s Stream) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.beginLocked(s)
	return len(r.history.Streams) - 1
}

// told adds to a stream.
func (r *Recording) told(stream int, c Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.history.Streams[stream]
	s.Told = append(s.Told, c)
}

package histories

import (
	"iter"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pointer"
	protocol "github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// RecordSource records the lists and events of a source: give the reader the returned source
// instead. Each complete list is a stream, each watch another; a watch list is one stream.
//
// Some answers are not recorded: lists that break off, a reflector's probes (whole lists at a limit
// of one, and lists at one of 300), and watches that begin without a version.
// Nor is anything after an object that cannot be decoded, since the reader must then list again.
func RecordSource[T store.Object](reader string, source listwatch.ListerWatcher[T]) (listwatch.ListerWatcher[T], *Recording) {
	r := &Recording{history: History{Reader: reader}}
	recorded := &recordedSource[T]{recording: r}
	return listwatch.Intercept(source, recorded.list, recorded.watch), r
}

type recordedSource[T store.Object] struct {
	recording *Recording
	pages     map[string]string // of the list in flight; guarded by the recording's lock
}

func (s *recordedSource[T]) list(request metav1.ListOptions, list listwatch.List[T]) listwatch.List[T] {
	items := list.Items
	list.Items = func(yield func(T, error) bool) {
		page := map[string]string{}
		for obj, err := range items {
			if err != nil {
				page = nil
			} else if page != nil {
				page[store.KeyOf(obj)] = obj.GetResourceVersion()
			}
			if !yield(obj, err) {
				return
			}
		}
		meta := list.Meta()
		if request.Limit == protocol.ProbePage || request.Limit == 1 && request.Continue == "" && meta.Continue == "" {
			return // a reflector's probe, which keeps nothing
		}
		s.listed(request.Continue == "", page, meta)
	}
	return list
}

// listed adds one page. A nil page means that the list broke off.
func (s *recordedSource[T]) listed(first bool, page map[string]string, meta metav1.ListMeta) {
	s.recording.mu.Lock()
	defer s.recording.mu.Unlock()
	switch {
	case page == nil:
		s.pages = nil
		return
	case first:
		s.pages = page
	case s.pages != nil:
		maps.Copy(s.pages, page)
	}
	if meta.Continue == "" && s.pages != nil {
		s.recording.beginLocked(Stream{Listed: &State{ResourceVersion: meta.ResourceVersion, Objects: s.pages}})
		s.pages = nil
	}
}

func (s *recordedSource[T]) watch(
	request metav1.ListOptions, events iter.Seq2[listwatch.Event[T], error],
) iter.Seq2[listwatch.Event[T], error] {
	return func(yield func(listwatch.Event[T], error) bool) {
		const none = -1
		stream, initial := none, map[string]string(nil)
		switch {
		case watchlist.Asked(request):
			initial = map[string]string{}
		case request.ResourceVersion != "" && request.ResourceVersion != "0":
			stream = s.recording.begin(Stream{After: request.ResourceVersion})
		}
		for event, err := range events {
			switch {
			case err != nil:
				stream, initial = none, nil
			case stream != none:
				s.recording.told(stream, changeOf(event))
			case initial != nil && event.InitialEventsEnd:
				stream = s.recording.begin(Stream{Listed: &State{ResourceVersion: event.ResourceVersion, Objects: initial}})
				initial = nil
			case initial != nil && event.Type == watch.Added:
				initial[store.KeyOf(event.Object)] = event.ResourceVersion
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

func changeOf[T store.Object](event listwatch.Event[T]) Change {
	c := Change{Type: event.Type, ResourceVersion: event.ResourceVersion}
	if event.Type != watch.Bookmark {
		c.Key = store.KeyOf(event.Object)
	}
	return c
}

// RecordStore records the writes of a reflector into a store: give the reflector the returned store
// instead. A stream begins with each Replace and lasts until the next, however many watches that
// takes. A write that the store refuses ends its stream, since the reflector must list again after
// it.
func RecordStore[T store.Object](reader string, st store.Store[T]) (store.Store[T], *Recording) {
	r := &Recording{history: History{Reader: reader}}
	return &recordedStore[T]{to: st, recording: r}, r
}

type recordedStore[T store.Object] struct {
	to        store.Store[T]
	recording *Recording
	listed    bool // a stream is in flight; one writer at a time
}

// Snapshot passes the store's own through, since a reflector looks there for the objects that it
// holds.
func (s *recordedStore[T]) Snapshot() store.Snapshot[T] {
	if holder, ok := s.to.(store.Snapshotter[T]); ok {
		return holder.Snapshot()
	}
	return store.Snapshot[T]{}
}

func (s *recordedStore[T]) Add(obj T) error    { return s.write(watch.Added, obj, s.to.Add) }
func (s *recordedStore[T]) Update(obj T) error { return s.write(watch.Modified, obj, s.to.Update) }
func (s *recordedStore[T]) Delete(obj T) error { return s.write(watch.Deleted, obj, s.to.Delete) }

func (s *recordedStore[T]) write(kind watch.EventType, obj T, do func(T) error) error {
	err := do(obj)
	s.told(err, Change{Type: kind, Key: store.KeyOf(obj), ResourceVersion: obj.GetResourceVersion()})
	return err
}

func (s *recordedStore[T]) Bookmark(resourceVersion string) error {
	var err error
	if to, ok := s.to.(store.Bookmarker); ok {
		err = to.Bookmark(resourceVersion)
	}
	s.told(err, Change{Type: watch.Bookmark, ResourceVersion: resourceVersion})
	return err
}

// AnotherHistory passes on what the reflector says.
func (s *recordedStore[T]) AnotherHistory() {
	if to, ok := s.to.(store.Historian); ok {
		to.AnotherHistory()
	}
}

func (s *recordedStore[T]) told(err error, c Change) {
	if err != nil {
		s.listed = false
	}
	if s.listed {
		s.recording.mu.Lock()
		defer s.recording.mu.Unlock()
		s.recording.toldLocked(c)
	}
}

func (s *recordedStore[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	objects := map[string]string{}
	err := s.to.Replace(func(yield func(T, error) bool) {
		for obj, err := range items {
			if err == nil {
				objects[store.KeyOf(obj)] = obj.GetResourceVersion()
			}
			if !yield(obj, err) {
				return
			}
		}
	}, resourceVersion)
	if err == nil {
		s.recording.begin(Stream{Listed: &State{ResourceVersion: resourceVersion(), Objects: objects}})
		s.listed = true
	}
	return err
}

// RecordHandler records the calls of an event handler, by an informer of this project or of
// client-go. Call told for each event: old is nil for an addition, new for a deletion.
//
// inferred is true for an event that comes from a state, not from a watch. Such events are the
// handler's initial list, and the difference after a relist or after falling behind
// ([Event.Initial] or Missed of package informer). A run of them stands for one new state, which
// begins a stream. The handler does not know its resource version, nor any bookmarks: see
// [Recording.Bookmark].
//
// [Event.Initial]: https://pkg.go.dev/github.com/tributary-go/tributary/informer#Event
func RecordHandler[T store.Object](reader string) (told func(old, new T, inferred bool), r *Recording) {
	r = &Recording{history: History{Reader: reader}, held: map[string]string{}}
	return func(old, new T, inferred bool) {
		kind, obj := watch.Modified, new
		switch {
		case pointer.Same(old, new):
			return // a repetition
		case pointer.None(old):
			kind = watch.Added
		case pointer.None(new):
			kind, obj = watch.Deleted, old
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if !inferred {
			r.settleLocked()
		}
		c := Change{Type: kind, Key: store.KeyOf(obj), ResourceVersion: obj.GetResourceVersion()}
		if kind == watch.Deleted {
			delete(r.held, c.Key)
		} else {
			r.held[c.Key] = c.ResourceVersion
		}
		switch {
		case inferred:
			r.inferred = true
		case len(r.history.Streams) == 0:
			r.beginLocked(Stream{Listed: &State{Objects: map[string]string{}}, Told: []Change{c}})
		default:
			r.toldLocked(c)
		}
	}, r
}

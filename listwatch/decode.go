package listwatch

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"maps"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/internal/wire"
	"github.com/tributary-go/tributary/store"
)

// The memory of one stream, beside its read-ahead: a list holds it all the time, a watch only while
// frames arrive. A process has few lists, and as many watches as reflectors.
const (
	maxObject   = 32 << 20 // an API server accepts no object over 3 MiB
	maxAhead    = 256 << 10
	watchBuffer = 256 // a bookmark; whatever else comes is read ahead
	leastBuffer = 16  // of a watch of Secrets, which keeps its buffer
)

// largeReaders read ahead. The number in use is that of lists, and of watches with something to
// read.
var largeReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, maxAhead) }}

func largeReader(from io.Reader) *bufio.Reader {
	r := largeReaders.Get().(*bufio.Reader)
	r.Reset(from)
	return r
}

// putLargeReader keeps a reader for other streams, unless it has read fleeting objects.
func putLargeReader(r *bufio.Reader, fleeting bool) {
	if r.Reset(nil); !fleeting {
		largeReaders.Put(r)
	}
}

// decoder turns the bytes of a stream into objects. Only an [encoding] knows the bytes' format. It
// is safe for concurrent use.
type decoder[T store.Object] struct {
	new        func() T
	kind       string         // the kind of every object; empty: any
	protobuf   bool           // T has generated protobuf code
	limit      int            // the maximum bytes of one object
	memo       *sharing.Memo  // decoded parts; nil without sharing
	plain      *atomic.Uint64 // bytes decoded without a memo
	held       *heldCopy[T]   // nil if the reader's copy is unknown
	drop       bool           // drop managedFields
	cuts       bool           // cut managedFields out of the bytes
	asClientGo bool           // keep objects without a name, and take {} for an empty list
	keep       keeper[T]      // in place of decoding; nil for readers of objects
	fleeting   bool           // nothing may be remembered of the objects: they are Secrets
}

// keeper makes the objects of a reader that keeps bytes; see [ListWatch.Encoded]. decode does so by
// decoding: a bookmark's annotations count, and are not read off the bytes.
type keeper[T store.Object] interface {
	keep(e encoding[T], data []byte, kind schema.GroupVersionKind) (T, error)
	decode(e encoding[T], data []byte, kind schema.GroupVersionKind) (T, error)
}

// errStopped: the consumer left its loop.
var errStopped = errors.New("stopped")

// unmarshaler is the generated protobuf code of an API type.
type unmarshaler interface{ Unmarshal(data []byte) error }

func newDecoder[O any, T interface {
	*O
	store.Object
}]() *decoder[T] {
	_, protobuf := any(T(new(O))).(unmarshaler)
	return &decoder[T]{new: func() T { return new(O) }, kind: kindOf(new(O)), protobuf: protobuf, limit: maxObject, plain: new(atomic.Uint64)}
}

// share turns interning on, together with all other collections of that resource and scope, unless
// the process may not use the hash that makes it safe. Call it after drop is set.
func (d *decoder[T]) share(resource string, scope any) {
	if memo, err := sharing.Of(sharing.Kind{Type: reflect.TypeFor[T](), Resource: resource, Scope: scope, Drop: d.drop}); err == nil {
		d.memo = memo
	}
}

// stats are those of the memo; without one, of what was decoded.
func (d *decoder[T]) stats() SharingStats {
	if d.memo == nil {
		return SharingStats{Bytes: d.plain.Load()}
	}
	s := d.memo.Stats()
	return SharingStats{
		Same: s.Same, Lookups: s.Lookups, Hits: s.Hits, Bytes: s.Bytes, Shared: s.Shared, Entries: s.Entries, Held: s.Held,
	}
}

// object decodes an object.
func (d *decoder[T]) object(e encoding[T], data []byte, kind schema.GroupVersionKind, last sharing.Last) (T, sharing.Notes, error) {
	if d.memo == nil {
		d.plain.Add(uint64(len(data)))
	}
	if d.keep != nil {
		obj, err := d.keep.keep(e, data, kind)
		return obj, nil, err
	}
	return e.object(data, kind, last)
}

// dropped clears managedFields that decoding could not skip. obj is unpublished, but an
// unstructured object's inner maps may be shared: copy before deleting.
func (d *decoder[T]) dropped(obj T) T {
	u, isTree := any(obj).(*unstructured.Unstructured)
	switch {
	case !d.drop:
	case isTree:
		metadata, ok := u.Object["metadata"].(map[string]any)
		if _, has := metadata["managedFields"]; ok && has {
			metadata = maps.Clone(metadata)
			delete(metadata, "managedFields")
			u.Object["metadata"] = metadata
		}
	default:
		obj.SetManagedFields(nil)
	}
	return obj
}

// cut is how the frames of a watch become lean; nil if they stay as they are.
func (d *decoder[T]) cut(lean func(data []byte) []byte) func(data []byte) []byte {
	if !d.cuts {
		return nil
	}
	return lean
}

// listed tells the memo the size of the collection.
func (d *decoder[T]) listed(objects, bytes int) {
	if d.memo != nil {
		d.memo.Listed(objects, bytes)
	}
}

// moved tells the memo what came or went after that.
func (d *decoder[T]) moved(bytes int) {
	if d.memo != nil {
		d.memo.Moved(bytes)
	}
}

// begin handles a reader with a copy that lists again: it may have written into objects, so verify
// its copy and the memo. A reader that has got no object yet has written into none.
func (d *decoder[T]) begin(request metav1.ListOptions) {
	if d.held == nil || request.Watch && !watchlist.Asked(request) || request.Continue != "" {
		return
	}
	if d.held.digests.begin() && d.memo != nil {
		d.memo.Doubt()
	}
}

// list decodes the body of a LIST. It closes the body if the loop is left during a read.
func (d *decoder[T]) list(body io.ReadCloser, yield func(T, error) bool) (metav1.ListMeta, error) {
	items := newItems(d, body, yield)
	defer items.stop()
	defer func() { d.listed(items.taken, items.bytes) }()
	r := largeReader(items)
	defer putLargeReader(r, d.fleeting)
	start, err := r.Peek(maxStart)
	e, unknown := d.encodingOf(start, false)
	switch {
	case unknown == nil:
		items.encoding = e
		meta, err := e.list(r, items)
		if errors.Is(err, errStopped) {
			return meta, err
		}
		if err := items.end(); err != nil {
			return meta, err
		}
		return meta, err
	case err != nil && strings.HasPrefix(wire.Magic, string(start)) && (len(start) > 0 || err != io.EOF):
		return metav1.ListMeta{}, unexpected(err)
	}
	return metav1.ListMeta{}, unknown
}

// watch decodes the body of a WATCH until it ends; nil means a clean end between two frames. The
// initial events of a watch list are its state.
func (d *decoder[T]) watch(body io.Reader, initial bool, yield func(Event[T], error) bool) error {
	size := watchBuffer
	if d.fleeting {
		size = leastBuffer
	}
	r := bufio.NewReaderSize(body, size)
	start, err := r.Peek(1)
	if err != nil {
		return atBoundary(err)
	}
	e, err := d.encodingOf(start, true)
	if err != nil {
		return err
	}
	frames, err := e.frames(r)
	if err != nil {
		return err
	}
	defer frames.close()
	bytes := 0 // of the initial events
	decode := func(f frame[T]) (Event[T], error) { return d.event(e, f) }
	events := newPipeline(neighbours, decode, func(event Event[T], err error) error {
		if err != nil && !isUnusable(err) {
			return err
		}
		switch {
		case event.InitialEventsEnd:
			initial = false
			d.listed(0, bytes)
		case initial:
			bytes += event.Bytes
		case event.Type == watch.Added:
			d.moved(event.Bytes)
		case event.Type == watch.Deleted:
			d.moved(-event.Bytes)
		}
		if !yield(event, err) {
			return errStopped
		}
		return nil
	})
	defer events.stop()
	_, follows := e.(protobufEncoding[T])
	for {
		f, err := frames.next()
		if err != nil { // of a frame that has arrived whole, perhaps, after others that wait
			return cmp.Or(events.end(), atBoundary(err))
		}
		more := frames.waits()
		if follows && watch.EventType(f.event) == watch.Modified && f.sealed == nil {
			f.last = d.held.last(f.identity)
			f.last.Changes = true
		}
		switch {
		case watch.EventType(f.event) == watch.Added && d.holds(&f):
			err = events.known(newEvent(watch.Added, f.held.obj, f.size))
		case more:
			err = events.put(f)
		default:
			err = events.now(f)
		}
		if err == nil && !more {
			err = events.end()
		}
		if err != nil {
			return err
		}
	}
}

// isUnusable reports whether an error stands for one event, after which the stream goes on.
func isUnusable(err error) bool {
	var unusable *DecodeError
	return errors.As(err, &unusable)
}

// atBoundary turns io.EOF into a clean end: readers return it only between frames.
func atBoundary(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

func (d *decoder[T]) event(e encoding[T], f frame[T]) (Event[T], error) {
	if f.malformed != nil {
		return Event[T]{}, &DecodeError{Op: "watch", Event: "unknown", Err: f.malformed}
	}
	var none T
	kind := watch.EventType(f.event)
	switch kind {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
	case watch.Error:
		return Event[T]{}, reported(e, f)
	default:
		if f.event == "" && f.object == nil {
			return Event[T]{}, errNoEvent
		}
		return Event[T]{}, &DecodeError{Op: "watch", Event: "unknown", Object: e.key(f.object), Err: errUnknownEvent}
	}
	var notes sharing.Notes
	obj, err := none, f.sealed
	switch {
	case err != nil:
	case kind == watch.Bookmark && d.keep != nil:
		obj, err = d.keep.decode(e, f.object, f.kind)
	default:
		obj, notes, err = d.object(e, f.object, f.kind, f.last)
	}
	if err == nil && kind != watch.Bookmark {
		err = named(obj, d.asClientGo)
	}
	if err != nil {
		return Event[T]{}, &DecodeError{Op: "watch", Event: f.event, Object: e.key(f.object), Err: err}
	}
	switch kind {
	case watch.Deleted:
		if d.held != nil {
			d.held.digests.forget(f.identity.uid)
		}
	case watch.Added, watch.Modified:
		obj = d.held.settle(f.held, f.object, obj, notes)
	}
	return newEvent(kind, obj, f.size), nil
}

// reported decodes the Status of an ERROR event.
func reported[T store.Object](e encoding[T], f frame[T]) error {
	var status metav1.Status
	if f.sealed != nil || e.status(f.object, &status) != nil {
		return errUndecodableStatus
	}
	return statusError(&status)
}

// named refuses an object without a name, unless the store takes it: others would refuse the whole
// list.
func named(obj metav1.Object, nameless bool) error {
	if obj.GetName() == "" && !nameless {
		return errNoName
	}
	return nil
}

// check refuses a kind other than the Go type's.
func (d *decoder[T]) check(kind string) error {
	if kind != "" && d.kind != "" && kind != d.kind {
		return wrongKind(kind, d.kind)
	}
	return nil
}

// checkList refuses a kind other than the Go type's list.
func (d *decoder[T]) checkList(kind string) error {
	if kind == "Status" {
		return wrongList(kind, "list")
	}
	if kind != "" && d.kind != "" && kind != d.kind+"List" {
		return wrongList(kind, d.kind+"List")
	}
	return nil
}

func newEvent[T store.Object](kind watch.EventType, obj T, bytes int) Event[T] {
	event := Event[T]{Type: kind, Object: obj, ResourceVersion: obj.GetResourceVersion(), Bytes: bytes}
	if kind == watch.Bookmark {
		var none T
		event.Object = none
		event.kind = obj.GetObjectKind().GroupVersionKind()
		event.InitialEventsEnd = obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	}
	return event
}

// eventName avoids a string per event. It reports whether the type is one of the API's.
func eventName(name []byte) (event string, known bool) {
	for _, known := range []watch.EventType{watch.Modified, watch.Added, watch.Deleted, watch.Bookmark, watch.Error} {
		if string(name) == string(known) {
			return string(known), true
		}
	}
	return string(name), false
}

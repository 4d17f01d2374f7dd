package listwatch

import (
	"context"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/store"
)

// ListerWatcher lists and watches one collection. Implementations are safe for concurrent use.
//
// Optional abilities are [Holder], and the method that [SupportsWatchList] asks.
type ListerWatcher[T store.Object] interface {
	// List begins a LIST. Nothing is sent before the result's Items are ranged over, and the request ends with the
	// loop or with ctx.
	List(ctx context.Context, options metav1.ListOptions) List[T]

	// Watch yields the events of one WATCH in order, and blocks its caller while there is none. It ends without an
	// error when the server ends it cleanly, after an error otherwise; only after a *DecodeError does it go on. The
	// request ends with the loop or with ctx, whose error is then the last one.
	Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[Event[T], error]
}

// List is one LIST, read while it arrives.
type List[T store.Object] struct {
	// Items yields the objects in the server's order; it can be ranged over once. An error ends it, but for a
	// *DecodeError, which stands for the one object that it names. The objects may be kept, but not modified: they may
	// share memory with others.
	Items iter.Seq2[T, error]
	// Meta returns the list's metadata: resource version, continue token. It is complete once Items has ended.
	Meta func() metav1.ListMeta
}

// Event is one event of a WATCH.
type Event[T store.Object] struct {
	// Type is watch.Added, watch.Modified, watch.Deleted or watch.Bookmark. An ERROR of the server is an error.
	Type watch.EventType
	// Object is the object after the change, or its last state for a deletion; nil for a bookmark. It may be kept, but
	// not modified: it may share memory with others.
	Object T
	// ResourceVersion is the version from which a later watch goes on after this event.
	ResourceVersion string
	// InitialEventsEnd marks the bookmark that ends the initial events of a watch with sendInitialEvents.
	InitialEventsEnd bool

	kind schema.GroupVersionKind // of a bookmark's object, where T keeps it: ToClientGo hands it on
}

func newEvent[T store.Object](kind watch.EventType, obj T) Event[T] {
	event := Event[T]{Type: kind, Object: obj, ResourceVersion: obj.GetResourceVersion()}
	if kind == watch.Bookmark {
		var none T
		event.Object = none
		event.kind = obj.GetObjectKind().GroupVersionKind()
		event.InitialEventsEnd = obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	}
	return event
}

// ListWatch is the [ListerWatcher] that the constructors of this package return. One of [FromClient] remembers the parts
// of objects that it has decoded, for all its lists and watches.
type ListWatch[T store.Object] struct {
	list        func(context.Context, metav1.ListOptions) List[T]
	watch       func(context.Context, metav1.ListOptions) iter.Seq2[Event[T], error]
	noWatchList bool
	private     bool          // each object has memory of its own, and nobody else looks at it
	memo        *sharing.Memo // nil where nothing is shared
	// holding is nil if nothing is decoded.
	holding func(held heldCopy[T]) ListerWatcher[T]
}

// List implements [ListerWatcher].
func (lw *ListWatch[T]) List(ctx context.Context, options metav1.ListOptions) List[T] {
	return lw.list(ctx, options)
}

// Watch implements [ListerWatcher].
func (lw *ListWatch[T]) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[Event[T], error] {
	return lw.watch(ctx, options)
}

// IsWatchListSemanticsUnSupported reports what [WithoutWatchList] set.
func (lw *ListWatch[T]) IsWatchListSemanticsUnSupported() bool { return lw.noWatchList }

// Sharing returns what has been decoded once for many objects so far. It is zero with [WithoutSharing], and for sources
// that do not decode.
func (lw *ListWatch[T]) Sharing() SharingStats {
	if lw.memo == nil {
		return SharingStats{}
	}
	s := lw.memo.Stats()
	return SharingStats{
		Same: s.Same, Lookups: s.Lookups, Hits: s.Hits, Bytes: s.Bytes, Shared: s.Shared, Entries: s.Entries, Held: s.Held, Changing: s.Changing,
	}
}

// SharingStats says how much of a collection is equal, and what remembering it takes.
type SharingStats struct {
	// Same is how often a part of an object was equal in the object before, or in its own last state, Lookups how often another was looked up among
	// all that is remembered, and Hits how often it was found.
	Same, Lookups, Hits uint64
	// Bytes is the size of all objects on the wire, and Shared how much of that was not decoded again.
	Bytes, Shared uint64
	// Entries is the number of parts remembered now, and Held the bytes of wire that they stand for. An entry takes
	// some 50 bytes beside the part itself, which usually belongs to a living object.
	Entries, Held int
	// Changing is the number of objects whose last change is remembered, at less than 1 KiB each.
	Changing int
}

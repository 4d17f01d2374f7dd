package listwatch

import (
	"cmp"
	"context"
	"iter"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/store"
)

// ListerWatcher lists and watches one collection. Implementations are safe for concurrent use.
//
// Optional abilities are [Holder] and four methods. IsWatchListSemanticsUnSupported() bool: if it
// returns true, the source does not answer a watch that sends the state first (KEP-3157).
// Collection() (resource, namespace string): it names the collection in log lines, as
// [ListWatch.Collection] does, and ObjectType() string names the objects' type, as
// [ListWatch.ObjectType] does. KeepsNameless() bool: if it returns true, informers keep objects
// without a name; see [store.Indexer.KeepNameless].
type ListerWatcher[T store.Object] interface {
	// List begins a LIST. The request is sent when the result's Items are ranged over, and ends
	// with the loop or with ctx.
	List(ctx context.Context, options metav1.ListOptions) List[T]

	// Watch yields the events of one WATCH in order, and blocks between them. It ends without an
	// error if the server ends it cleanly. Otherwise it ends with an error; only after a
	// *DecodeError does it go on. The request ends with the loop or with ctx, whose error is then
	// the last one.
	Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[Event[T], error]
}

// List is one LIST, read while it arrives.
type List[T store.Object] struct {
	// Items yields the objects in the server's order; range over it once. An error ends it, except
	// a *DecodeError, which stands for the one object that it names. A program may keep the
	// objects, but must not modify them: they may share memory with others.
	Items iter.Seq2[T, error]
	// Meta returns the list's metadata: resource version, continue token. It is complete once Items
	// has ended.
	Meta func() metav1.ListMeta
}

// Event is one event of a WATCH.
type Event[T store.Object] struct {
	// Type is watch.Added, watch.Modified, watch.Deleted or watch.Bookmark. A server's ERROR event
	// is yielded as an error instead.
	Type watch.EventType
	// Object is the object after the change, or its last state for a deletion; nil for a bookmark.
	// A program may keep it, but must not modify it: it may share memory with others.
	Object T
	// ResourceVersion is the version from which a later watch resumes after this event.
	ResourceVersion string
	// Bytes is the length of the object on the wire, or in etcd; zero if the source does not know
	// it.
	Bytes int
	// InitialEventsEnd marks the bookmark that ends the initial events of a watch with
	// sendInitialEvents.
	InitialEventsEnd bool

	kind schema.GroupVersionKind // of a bookmark's object if T has a kind, for ToClientGo
}

// ListWatch is the [ListerWatcher] that the constructors of this package return. With [FromClient],
// all sources of one type and resource over one client share equal parts.
type ListWatch[T store.Object] struct {
	list  func(context.Context, metav1.ListOptions) List[T]
	watch func(context.Context, metav1.ListOptions) iter.Seq2[Event[T], error]
	// lookup and metadata are nil if the source has no such requests.
	lookup      func(ctx context.Context, namespace, name string) List[T]
	metadata    func(context.Context, metav1.ListOptions) List[*metav1.PartialObjectMetadata]
	origin      any // nil if it is not known
	collection  collection
	objects     string // the type of encoded objects; otherwise empty
	noWatchList bool
	nameless    bool
	private     bool                // each object is the reader's alone
	sharing     func() SharingStats // nil if nothing is decoded
	// holding is nil if nothing is decoded.
	holding func(held heldCopy[T]) ListerWatcher[T]
	// unshared is nil if nothing is decoded, and so is passing, for a reader that keeps no object.
	unshared, passing func() *ListWatch[T]
	// pass tells this very source that its reader keeps no object; nil if nothing is shared.
	pass func()
	// encoded is nil if objects are not checked as bytes.
	encoded func() *ListWatch[*store.Encoded]
}

func (lw *ListWatch[T]) passes() {
	if lw.pass != nil {
		lw.pass()
	}
}

// List implements [ListerWatcher].
func (lw *ListWatch[T]) List(ctx context.Context, options metav1.ListOptions) List[T] {
	return lw.list(ctx, options)
}

// Watch implements [ListerWatcher].
func (lw *ListWatch[T]) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[Event[T], error] {
	return lw.watch(ctx, options)
}

// Collection names what is read: the resource, such as deployments.apps, and the namespace of
// [InNamespace]. Both are empty if the source does not know its resource: functions do not tell it.
func (lw *ListWatch[T]) Collection() (resource, namespace string) {
	return lw.collection.resource, lw.collection.namespace
}

// ObjectType names the Go type of the objects. Of [ListWatch.Encoded], it is the type to which the
// bytes decode.
func (lw *ListWatch[T]) ObjectType() string {
	return cmp.Or(lw.objects, reflect.TypeFor[T]().String())
}

// collection names what a source reads; empty if that is unknown.
type collection struct{ resource, namespace string }

// collectionOf names what another source reads.
func collectionOf(source any) (c collection) {
	if named, ok := source.(interface {
		Collection() (resource, namespace string)
	}); ok {
		c.resource, c.namespace = named.Collection()
	}
	return c
}

// IsWatchListSemanticsUnSupported reports whether [WithoutWatchList] was given.
func (lw *ListWatch[T]) IsWatchListSemanticsUnSupported() bool { return lw.noWatchList }

// KeepsNameless reports whether the source may have objects without a name, as behind client-go's
// interfaces. Others count as undecodable.
func (lw *ListWatch[T]) KeepsNameless() bool { return lw.nameless }

// Lookup begins a consistent LIST of the one object of a name, which is empty if the collection
// does not have it. It reports false if the source cannot ask for single objects: only [FromClient]
// can, and a [Project] of it.
func (lw *ListWatch[T]) Lookup(ctx context.Context, namespace, name string) (List[T], bool) {
	if lw.lookup == nil {
		return List[T]{}, false
	}
	return lw.lookup(ctx, namespace, name), true
}

// Unshared returns the same source for a reader that compares its objects with those of a cache:
// each is decoded anew, and shares memory with no other one. So it is what the server sent, even if
// a program has written into the objects that it read. A source that does not decode is returned as
// it is.
func (lw *ListWatch[T]) Unshared() ListerWatcher[T] {
	if lw.unshared != nil {
		return lw.unshared()
	}
	return lw
}

func unshared[T store.Object](source ListerWatcher[T]) ListerWatcher[T] {
	if lw, ok := source.(*ListWatch[T]); ok {
		return lw.Unshared()
	}
	return source
}

// Metadata is [ListWatch.List] of the objects' metadata alone, in the server's own form for that:
// names, UIDs and versions of many objects for little. It reports false where [ListWatch.Lookup]
// does.
func (lw *ListWatch[T]) Metadata(ctx context.Context, options metav1.ListOptions) (List[*metav1.PartialObjectMetadata], bool) {
	if lw.metadata == nil {
		return List[*metav1.PartialObjectMetadata]{}, false
	}
	return lw.metadata(ctx, options), true
}

// Origin is equal for all sources of one resource over one client, whatever their namespaces and
// selectors: their resource versions are of one history. It is nil if that is not known.
func (lw *ListWatch[T]) Origin() any { return lw.origin }

// origin is a resource of a client.
type origin struct {
	client   rest.Interface
	resource string
}

// Sharing returns the statistics of interning so far. With [WithoutSharing], and for Secrets, only
// Bytes is known. All are zero for sources that do not decode.
func (lw *ListWatch[T]) Sharing() SharingStats {
	if lw.sharing == nil {
		return SharingStats{}
	}
	return lw.sharing()
}

// SharingStats tells how much of a collection is equal, and the cost of the memo.
type SharingStats struct {
	// Same counts the parts that were equal in the object before, or in the object's own last
	// state. Lookups counts the other parts, which were looked up among all remembered ones; Hits
	// counts those that were found.
	Same, Lookups, Hits uint64
	// Bytes is the size of all objects on the wire, uncompressed. Shared is the part of it that was
	// not decoded again. Neither counts an object that its reader holds, in the very same bytes.
	Bytes, Shared uint64
	// Entries is the number of parts that all collections of the resource over this client
	// remember, and Held the bytes of wire that they stand for. An entry takes some 30 bytes beside
	// the part itself, which usually belongs to a living object.
	Entries, Held int
}

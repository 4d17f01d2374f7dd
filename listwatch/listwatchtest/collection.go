package listwatchtest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// Collection is a fake collection on a server. It is written under the API server's rules, and
// listed and watched as there. It fails in the way that a test asks for. [New] and [Serve] make
// one.
//
// All methods are safe for concurrent use. The writing methods fail the test on an error, so call
// them from the test's goroutine. [Collection.Origin] has the same methods with errors. The objects
// that they return are shared and read-only: copy an object before you change it.
type Collection[T store.Object] struct {
	server   *Server
	resource Resource[T]
	origin   *collection.Collection[T]
	read     func(options ...listwatch.Option) *listwatch.ListWatch[T]
}

// New makes a collection on a server of its own, which ends with t. Options are those of
// [NewServer]. T follows from the resource: New(t, Pods()) is a Collection[*corev1.Pod].
func New[T interface {
	*O
	store.Object
}, O any](t testing.TB, resource Resource[T], options ...watchcache.Option) *Collection[T] {
	t.Helper()
	return Serve(NewServer(t, options...), resource)
}

// Serve adds a collection to a server, for code that uses several. It panics if the server has the
// resource already.
func Serve[T interface {
	*O
	store.Object
}, O any](s *Server, resource Resource[T]) *Collection[T] {
	s.t.Helper()
	client, err := listwatch.NewRESTClient(s.Config(), resource.Kind.GroupVersionResource().GroupVersion())
	if err != nil {
		s.t.Fatalf("listwatchtest: %v", err)
	}
	return &Collection[T]{
		server: s, resource: resource, origin: apiserver.Serve(s.origin, resource),
		read: func(options ...listwatch.Option) *listwatch.ListWatch[T] {
			return listwatch.FromClient[O, T](client, resource.Kind.Plural, options...)
		},
	}
}

// Server is the server that holds the collection, with its doors and its log of requests.
func (c *Collection[T]) Server() *Server { return c.server }

// ListerWatcher reads the collection through the door in memory, for a reflector. Options narrow
// it, as they narrow a source made from a client. For client-go's reflectors and informers, pass
// the result to [listwatch.ToClientGo].
//
// Objects that it reads are shared and read-only. A write into one fails the test, with the object
// and the field. listwatch.WithMutationDetector tells another function, or none (nil). A
// benchmark does not look for writes.
func (c *Collection[T]) ListerWatcher(options ...listwatch.Option) *listwatch.ListWatch[T] {
	return c.read(append([]listwatch.Option{c.server.mutations}, options...)...)
}

// Origin is the collection behind the fake: for writes that are expected to fail, Get and Snapshot.
func (c *Collection[T]) Origin() *collection.Collection[T] { return c.origin }

// Create stores a new object; see [collection.Collection.Create].
func (c *Collection[T]) Create(obj T) T {
	c.server.t.Helper()
	return must(c, "create", obj, func() (T, error) { return c.origin.Create(obj) })
}

// Update replaces an object except for its status; see [collection.Collection.Update].
func (c *Collection[T]) Update(obj T) T {
	c.server.t.Helper()
	return must(c, "update", obj, func() (T, error) { return c.origin.Update(obj) })
}

// UpdateStatus replaces the status of an object; see [collection.Collection.UpdateStatus].
func (c *Collection[T]) UpdateStatus(obj T) T {
	c.server.t.Helper()
	return must(c, "update the status of", obj, func() (T, error) { return c.origin.UpdateStatus(obj) })
}

// Delete deletes an object as a client does: an object with finalizers or a grace period stays,
// marked. See [collection.Collection.Delete]. Only the namespace and name of obj count.
func (c *Collection[T]) Delete(obj T) T {
	c.server.t.Helper()
	return must(c, "delete", obj, func() (T, error) {
		return c.origin.Delete(obj.GetNamespace(), obj.GetName(), metav1.DeleteOptions{})
	})
}

// Remove deletes an object at once, despite its finalizers and grace period. Only the namespace and
// name of obj count.
func (c *Collection[T]) Remove(obj T) T {
	c.server.t.Helper()
	return must(c, "remove", obj, func() (T, error) { return c.origin.Remove(obj.GetNamespace(), obj.GetName()) })
}

func must[T store.Object](c *Collection[T], op string, obj T, write func() (T, error)) T {
	c.server.t.Helper()
	result, err := write()
	if err != nil {
		c.server.t.Fatalf("listwatchtest: %s %s %q: %v", op, c.resource.Kind.Kind, store.KeyOf(obj), err)
	}
	return result
}

// Bookmark makes every watch in flight that allows bookmarks send one soon. Watches also send them
// by time: see [watchcache.WithBookmarkInterval].
func (c *Collection[T]) Bookmark() { c.origin.SendBookmarks() }

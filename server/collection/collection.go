package collection

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// Collection is a collection that is written here, by Go code and over HTTP, under the API server's
// rules. [New] makes one, and apiserver.Serve one that clients can reach.
//
// Objects are copied on the way in. Returned objects are the stored ones: shared and read-only.
// Errors are API status errors. All methods are safe for concurrent use.
type Collection[T store.Object] struct {
	cache     *watchcache.Cache[T]
	rules     Rules[T]
	part      string // the subresource that the objects are of; empty for whole objects
	storage   Storage[T]
	revision  *watchcache.Revision // nil if the storage counts
	ownership *ownership[T]
	options   WriteOptions
	client    bool // writes are a client's, which is held to all rules
}

// WriteOptions are how a client wants its writes to be made, as the parameters of a request say it.
type WriteOptions struct {
	// Manager is the name under which fields are owned (KEP-555). Empty means an unknown manager.
	Manager string
	// DryRun makes a write up to the storing, and returns the object that is not stored.
	DryRun bool
	// FieldValidation decides on a patch that names unknown fields, or a field twice: one
	// of metav1.FieldValidationIgnore, Warn and Strict. Empty means Ignore.
	FieldValidation string
	// Warn gets each warning for the client. It may be nil, and is called before the write
	// returns.
	Warn func(text string)
}

// As is the same collection for writes by a field manager (KEP-555). The empty name stands for an
// unknown manager.
func (c *Collection[T]) As(manager string) *Collection[T] {
	as := *c
	as.options.Manager = cmp.Or(manager, unknownManager)
	return &as
}

// With is the same collection for the writes of a client, which is held to all rules of the API
// server. Without it, the collection is its owner's, such as a test that prepares a state: the
// owner is held to the rules of metadata and versions, and stores an object as it is, without the
// [Rules] of its kind that are functions.
func (c *Collection[T]) With(o WriteOptions) *Collection[T] {
	as := *c
	as.client = true
	as.options = o
	as.options.Manager = cmp.Or(o.Manager, unknownManager)
	switch part, ok := c.storage.(interface{ with(WriteOptions) Storage[T] }); {
	case ok:
		as.storage = part.with(o)
	case o.DryRun:
		as.storage = dryRun[T]{c.storage}
	}
	return &as
}

// New makes an empty collection. Its versions are counted by revision. It fails on an incomplete
// kind and on options out of range.
func New[T store.Object](
	kind watchcache.Kind[T], rules Rules[T], revision *watchcache.Revision, options ...watchcache.Option,
) (*Collection[T], error) {
	if revision == nil {
		return nil, errors.New("collection: New: the revision is nil: make it with watchcache.NewRevision")
	}
	cache, err := watchcache.NewCache(kind, append(slices.Clone(options), watchcache.WithRevision(revision))...)
	if err != nil {
		return nil, err
	}
	c, err := On(cache, rules, memory[T]{cache, revision})
	if err != nil {
		return nil, err
	}
	c.revision = revision
	return c, nil
}

// On is a collection with its objects in a storage. Its readers have cache, which a reflector
// keeps equal to the storage, and which asks the storage whether it is fresh
// ([watchcache.WithUpstream]). It fails on a kind for which no owners of fields can be kept.
func On[T store.Object](cache *watchcache.Cache[T], rules Rules[T], storage Storage[T]) (*Collection[T], error) {
	return newCollection(cache, rules, storage, "")
}

// newCollection is [On], of whole objects or of a subresource.
func newCollection[T store.Object](cache *watchcache.Cache[T], rules Rules[T], storage Storage[T], part string) (*Collection[T], error) {
	owners, err := newOwnership(cache.Kind(), rules, part)
	if err != nil {
		return nil, err
	}
	return &Collection[T]{
		cache: cache, rules: rules, part: part, storage: storage, ownership: owners,
		options: WriteOptions{Manager: unknownManager},
	}, nil
}

// Kind describes the objects.
func (c *Collection[T]) Kind() watchcache.Kind[T] { return c.cache.Kind() }

// Rules are the rules that the collection was made with.
func (c *Collection[T]) Rules() Rules[T] { return c.rules }

// HasStatus reports whether objects have a status that is written apart.
func (c *Collection[T]) HasStatus() bool { return c.rules.hasStatus(c.Kind()) }

// WaitFresh returns once readers of the cache see every write that has returned: see
// [watchcache.Cache.WaitFresh]. It returns at once, unless the collection is [On] a storage.
func (c *Collection[T]) WaitFresh(ctx context.Context) error { return c.cache.WaitFresh(ctx) }

// Cache is the copy that lists and watches read. It is for readers: write through the collection.
func (c *Collection[T]) Cache() *watchcache.Cache[T] { return c.cache }

// Close closes the cache, for the owner of the collection: see [watchcache.Cache.Close]. Writes to
// a collection that [New] has made fail from then on; those to one [On] a storage are still made,
// but no reader sees them.
func (c *Collection[T]) Close() { c.cache.Close() }

// Snapshot is the content now. It is O(1).
func (c *Collection[T]) Snapshot() store.Snapshot[T] { return c.cache.Snapshot() }

// Watch follows the collection; see [watchcache.Cache.Watch].
func (c *Collection[T]) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[listwatch.Event[T], error] {
	return c.cache.Watch(ctx, options)
}

// OnChange has f told of every write; see [watchcache.Cache.OnChange].
func (c *Collection[T]) OnChange(f func(listwatch.Event[T])) { c.cache.OnChange(f) }

// Compact forgets the history, as a compaction and a restart of a real server do: see
// [watchcache.Cache.Compact].
func (c *Collection[T]) Compact() { c.cache.Compact() }

// Expire makes every version so far too old: the server moves on by one version, as with a write to
// another collection, and forgets all changes before. All watches under way end with a
// 410.
func (c *Collection[T]) Expire() {
	if c.revision == nil { // the storage counts
		c.cache.Expire(0)
		return
	}
	_ = c.revision.Write(func(string) (bool, error) { // it has no error of its own
		c.cache.Expire(c.revision.Current() + 1)
		return true, nil
	})
}

// SendBookmarks makes every watcher that wants bookmarks send one soon; see
// [watchcache.Cache.SendBookmarks].
func (c *Collection[T]) SendBookmarks() { c.cache.SendBookmarks() }

// Get returns an object, or NotFound. The namespace of cluster-scoped objects is not looked at.
func (c *Collection[T]) Get(namespace, name string) (T, error) {
	obj, found, err := c.storage.Read(c.Kind().Key(namespace, name))
	if err == nil && !found {
		err = c.notFound(name)
	}
	return obj, err
}

func (c *Collection[T]) there(found bool, name string) error {
	if found {
		return nil
	}
	return c.notFound(name)
}

func (c *Collection[T]) notFound(name string) error {
	return apierrors.NewNotFound(c.Kind().GroupResource(), name)
}

func (c *Collection[T]) conflict(name string, cause error) error {
	return apierrors.NewConflict(c.Kind().GroupResource(), name, cause)
}

// clientRules are the rules for a client's writes; the owner is not held to their functions.
func (c *Collection[T]) clientRules() (r Rules[T]) {
	if c.client {
		return c.rules
	}
	return r
}

// fill fills in the fields that a client has left out.
func (c *Collection[T]) fill(obj T) {
	if fill := c.clientRules().Default; fill != nil {
		fill(obj)
	}
}

func (c *Collection[T]) warn(text string) {
	if c.options.Warn != nil {
		c.options.Warn(text)
	}
}

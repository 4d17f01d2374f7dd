package watchcache

import (
	"fmt"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Cache is a [store.Store] that remembers its last changes, so that any number of watchers can
// follow it. A reflector fills it with a copy of a server's collection, under that server's
// resource versions; a collection.Collection is one that is written here.
//
// What happens on a write: the new state is committed to the indexer; its difference to the old
// state goes into the window as changes; watchers that wait are woken. Nothing is done per watcher.
//
// All methods are safe for concurrent use; writers wait for each other, readers never for a Replace
// that is still arriving. Resource versions must be decimal numbers.
type Cache[T store.Object] struct {
	resource Resource[T]
	config   config
	fields   map[string]func(T) string
	indexes  map[string]*store.Index[T, string]
	objects  *store.Indexer[T]
	revision *Revision // of the server that writes this cache; nil if a reflector does
	changed  signal.Signal
	asked    atomic.Uint64 // how often bookmarks were asked for

	writing   sync.Mutex                 // serialises writers
	observers []func(listwatch.Event[T]) // of [Cache.OnChange]; guarded by writing

	mu      sync.RWMutex // guards what follows
	window  window[T]
	state   store.Snapshot[T]
	version uint64
	filled  bool
}

// NewCache makes an empty cache. Until it is filled, watching it is a 429 error. It fails on a
// resource without version, plural or kind, and on an option out of range.
func NewCache[T store.Object](resource Resource[T], options ...Option) (*Cache[T], error) {
	config, err := newConfig(options)
	if err != nil {
		return nil, err
	}
	if err := resource.validate(); err != nil {
		return nil, err
	}
	c := &Cache[T]{
		resource: resource, config: config, revision: config.revision, window: newWindow[T](config.window),
	}
	c.fields = map[string]func(T) string{nameField: func(obj T) string { return obj.GetName() }}
	if !resource.ClusterScoped {
		c.fields[namespaceField] = func(obj T) string { return obj.GetNamespace() }
	}
	c.indexes = map[string]*store.Index[T, string]{}
	var schema []store.AnyIndex[T]
	for _, f := range resource.Fields {
		c.fields[f.Label] = f.Value
		if f.Indexed {
			index := store.NewIndex(f.Label, func(obj T) []string { return []string{f.Value(obj)} })
			c.indexes[f.Label] = index
			schema = append(schema, index)
		}
	}
	c.objects = store.NewIndexer(schema...)
	if c.revision != nil { // an origin is known to be empty, from the first version on
		c.version, c.filled = 1, true
		c.window.clear(1, store.Snapshot[T]{}, false)
	}
	return c, nil
}

// Resource is the description that the cache was made with.
func (c *Cache[T]) Resource() Resource[T] { return c.resource }

// Snapshot is the content now. It is O(1).
func (c *Cache[T]) Snapshot() store.Snapshot[T] { return c.objects.Snapshot() }

// Add stores an object and tells the watchers. Over an object of the same UID and resource version
// it does nothing. It fails on an object without a name or a numeric resource version.
func (c *Cache[T]) Add(obj T) error { return c.put("add", obj) }

// Update does what [Cache.Add] does.
func (c *Cache[T]) Update(obj T) error { return c.put("update", obj) }

func (c *Cache[T]) put(op string, obj T) error {
	return c.change(op, obj, func() error { return c.objects.Add(obj) })
}

// Delete removes what is stored under obj's key and tells the watchers; obj is the last state,
// under the resource version of the deletion. Where nothing is stored, only the version moves on.
func (c *Cache[T]) Delete(obj T) error {
	return c.change("delete", obj, func() error { return c.objects.Delete(obj) })
}

func (c *Cache[T]) change(op string, obj T, do func() error) error {
	var none T
	version, err := uint64(0), error(nil)
	if obj != none {
		version, err = parseVersion(op, obj.GetResourceVersion())
	}
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	before := c.objects.Snapshot()
	if err := do(); err != nil {
		return fmt.Errorf("watchcache: %s: %w", op, err)
	}
	changes := changesBetween(before, c.objects.Snapshot(), 0, version)
	if op == "delete" && len(changes) == 1 {
		changes[0].gone = obj // the server's own account of the last state
	}
	c.publish(version, changes)
	return nil
}

// Replace makes items the whole content. Watchers see it as the difference to the old content,
// deletions included, or get a 410 where that difference is larger than the window or the resource
// version has gone back.
func (c *Cache[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	before := c.objects.Snapshot()
	version := uint64(0)
	whole := func(yield func(T, error) bool) {
		if eachVersioned(items, yield) {
			// The version is looked at as the last item, so that a bad one leaves the old content.
			var err error
			if version, err = parseVersion("replace", resourceVersion()); err != nil {
				var none T
				yield(none, err)
			}
		}
	}
	if err := c.objects.Replace(whole, func() string { return formatVersion(version) }); err != nil {
		return err
	}
	c.publishList(version, before)
	return nil
}

// eachVersioned passes items on, with an error for one whose version cannot be ordered. It reports
// whether they have come to a good end.
func eachVersioned[T store.Object](items iter.Seq2[T, error], yield func(T, error) bool) bool {
	var none T
	for obj, err := range items {
		// What has no name is for the indexer to refuse.
		if err == nil && obj != none && obj.GetName() != "" {
			_, err = parseVersion("replace", obj.GetResourceVersion())
		}
		if !yield(obj, err) || err != nil {
			return false
		}
	}
	return true
}

// Bookmark notes that the content is complete up to resourceVersion. An older one than the present
// is ignored.
func (c *Cache[T]) Bookmark(resourceVersion string) error {
	version, err := parseVersion("bookmark", resourceVersion)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.objects.Bookmark(resourceVersion); err != nil {
		return err
	}
	c.publish(version, nil)
	return nil
}

// Compact forgets all changes: from now on a watch or an exact list at an older version than the
// present gets a
// 410. Watchers that are up to date go on.
func (c *Cache[T]) Compact() {
	c.writing.Lock()
	defer c.writing.Unlock()
	version := c.current()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window.clear(max(version, c.version), c.state, false)
}

// SendBookmarks makes every watcher that wants bookmarks send one soon, before its interval is
// over. It does not wait.
func (c *Cache[T]) SendBookmarks() {
	c.asked.Add(1)
	c.changed.Broadcast()
}

// Expire forgets everything before version, and ends all watches with a 410.
func (c *Cache[T]) Expire(version uint64) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	c.version = max(version, c.version)
	c.window.clear(c.version, c.state, true)
	c.mu.Unlock()
	c.changed.Broadcast()
}

func versionOf[T store.Object](obj T) uint64 {
	version, _ := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	return version
}

func parseVersion(op, resourceVersion string) (uint64, error) {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("watchcache: %s: the resource version %q is not a decimal number", op, resourceVersion)
	}
	return version, nil
}

package watchcache

import (
	"fmt"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Cache is a [store.Store] that remembers its last changes, so that any number of watchers can
// follow it. A reflector fills it with a copy of a server's collection, under that server's
// resource versions; a collection.Collection is one that is written here.
//
// A write takes three steps: the new state is committed to the indexer; its difference to the old
// state goes into the window as changes; the watchers whose selection the changes may concern are
// woken. Nothing is done for any other watcher.
//
// All methods are safe for concurrent use; writers wait for each other, readers never for a Replace
// that is still arriving. Resource versions must be decimal numbers.
type Cache[T store.Object] struct {
	kind     Kind[T]
	config   config
	fields   map[string]func(T) string
	indexes  map[string]*store.Index[T, string]
	objects  *store.Indexer[T]
	revision *Revision // of the server that writes this cache; nil if a reflector does
	proof    *proof[T] // nil without [WithUpstream]
	changed  signal.Signal
	asked    atomic.Uint64 // how often bookmarks were asked for
	lists    atomic.Uint64 // how often the content was replaced
	work     *work

	writing   sync.Mutex                 // serialises writers
	observers []func(listwatch.Event[T]) // of [Cache.OnChange]; guarded by writing, as the next two
	woken     parked[T]                  // the watchers that a write has to wake
	yieldAt   time.Duration              // since born: when watchers may next run before the writer

	mu        sync.RWMutex // guards the next fields, and the present content of objects
	window    window[T]    // read by watchers without a lock
	lengths   lengths[T]
	dispatch  dispatch[T]
	replacing *store.Snapshot[T] // the content, while a Replace is arriving
	another   bool               // and it is of another history; guarded by writing
	states    []view[T]          // newer than version, known by comparison; oldest first
	version   uint64
	filled    bool
	lostBy    cause // why lost was set

	stats     stats
	lost      atomic.Uint64 // watchers before this number have lost their unread changes
	encodings encodings
	listings  listings[T]
	buffers   buffers[T]
	born      time.Time
}

// NewCache makes an empty cache. Until it is filled, watching it is a 429 error. It fails on a kind
// without version, plural or name, and on an option out of range.
func NewCache[T store.Object](kind Kind[T], options ...Option) (*Cache[T], error) {
	config, err := newConfig(options)
	if err != nil {
		return nil, err
	}
	if err := kind.validate(); err != nil {
		return nil, err
	}
	c := &Cache[T]{
		kind: kind, config: config, work: newWork(), revision: config.revision, window: newWindow[T](config), born: time.Now(),
		encodings: encodings{most: config.windowBytes / 4},
		listings:  listings[T]{bytes: config.listBytes},
		dispatch:  newDispatch[T](),
	}
	if config.upstream != nil {
		c.proof = &proof[T]{
			cache: c, upstream: config.upstream, seeking: errand{work: c.work}, comparing: errand{work: c.work},
		}
	}
	c.fields = map[string]func(T) string{nameField: func(obj T) string { return obj.GetName() }}
	c.indexes = map[string]*store.Index[T, string]{}
	var schema []store.AnyIndex[T]
	addField := func(f Field[T]) {
		c.fields[f.Label] = f.Value
		if f.Indexed {
			index := store.NewIndex(f.Label, func(obj T) []string { return []string{f.Value(obj)} })
			c.indexes[f.Label] = index
			schema = append(schema, index)
		}
	}
	if !kind.ClusterScoped {
		addField(Field[T]{Label: namespaceField, Value: func(obj T) string { return obj.GetNamespace() }, Indexed: true})
	}
	for _, f := range kind.Fields {
		addField(f)
	}
	c.objects = store.NewIndexer(schema...)
	if c.revision != nil { // an origin is known to be empty, from the first version on
		c.version, c.filled = 1, true
		c.window.clear(1, false)
	}
	return c, nil
}

// Kind is the description that the cache was made with.
func (c *Cache[T]) Kind() Kind[T] { return c.kind }

// Snapshot is the content now. It is O(1).
func (c *Cache[T]) Snapshot() store.Snapshot[T] { return c.objects.Snapshot() }

// Add stores an object and tells the watchers. Over an object of the same UID and resource version
// it does nothing. It fails on an object without a name or a numeric resource version.
func (c *Cache[T]) Add(obj T) error { return c.put("add", obj) }

// Update is [Cache.Add].
func (c *Cache[T]) Update(obj T) error { return c.put("update", obj) }

func (c *Cache[T]) put(op string, obj T) error { return c.change(op, obj, 0, c.objects.Put) }

// PutSized implements [store.Sized].
func (c *Cache[T]) PutSized(obj T, bytes int) error {
	return c.change("put", obj, bytes, c.objects.Put)
}

// Delete removes what is stored under obj's key and tells the watchers; obj is the last state,
// under the resource version of the deletion. Where nothing is stored, only the version moves on.
func (c *Cache[T]) Delete(obj T) error { return c.DeleteSized(obj, 0) }

// DeleteSized implements [store.Sized].
func (c *Cache[T]) DeleteSized(obj T, bytes int) error {
	return c.change("delete", obj, bytes, c.objects.Remove)
}

func (c *Cache[T]) change(op string, obj T, bytes int, do func(T) (store.Change[T], error)) error {
	version, err := uint64(0), error(nil)
	if !pointer.None(obj) {
		version, err = parseVersion(op, obj.GetResourceVersion())
	}
	if err == nil {
		err = c.writable(op)
	}
	if err != nil {
		return err
	}
	began := c.beginStoring()
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	d, err := do(obj)
	if err != nil {
		c.mu.Unlock()
		return fmt.Errorf("watchcache: %s: %w", op, err)
	}
	switch {
	case d.Unchanged():
		c.publish(version)
	case d.Recreated():
		c.publish(version, &change[T]{old: d.Old, version: max(version, 1) - 1, bytes: bytes}, &change[T]{now: d.New, version: version})
	default:
		ch := &change[T]{old: d.Old, now: d.New, version: version, bytes: bytes}
		if d.Deleted() {
			ch.gone = obj // the server's own account of the last state
		}
		c.publish(version, ch)
	}
	c.mu.Unlock()
	c.endStoring(began)
	c.wake()
	c.changed.Broadcast()
	return nil
}

// Replace makes items the whole content. Watchers see it as the difference to the old content. A
// watcher gets a 410 instead if the difference is larger than the window, if the content is of
// another history, or if it loses an object and that is not all.
func (c *Cache[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	if err := c.writable("replace"); err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	before := c.objects.Snapshot()
	c.another = false
	c.setReplacing(&before)
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
		c.setReplacing(nil)
		return err
	}
	c.lists.Add(1)
	c.publishList(version, before)
	return nil
}

// AnotherHistory implements [store.Historian]: the Replace under way ends all watches with a 410.
func (c *Cache[T]) AnotherHistory() { c.another = true }

// setReplacing fixes the content that readers see until the changes of a Replace are published.
func (c *Cache[T]) setReplacing(content *store.Snapshot[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replacing = content
}

// eachVersioned passes items on, with an error for one whose version cannot be ordered. It reports
// whether they have come to a good end.
func eachVersioned[T store.Object](items iter.Seq2[T, error], yield func(T, error) bool) bool {
	for obj, err := range items {
		// The indexer refuses an object without a name.
		if err == nil && !pointer.None(obj) && obj.GetName() != "" {
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
	if err == nil {
		err = c.writable("bookmark")
	}
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.bookmark(version)
}

// bookmark is [Cache.Bookmark] under the writing lock.
func (c *Cache[T]) bookmark(version uint64) error {
	if err := c.objects.Bookmark(formatVersion(version)); err != nil {
		return err
	}
	c.mu.Lock()
	c.publish(version)
	c.mu.Unlock()
	c.changed.Broadcast()
	return nil
}

// Compact forgets all changes: from now on a watch or an exact list at an older version than the
// present gets a 410. Watchers that are up to date go on.
func (c *Cache[T]) Compact() {
	c.writing.Lock()
	defer c.writing.Unlock()
	version := c.current()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states = nil
	c.window.clear(max(version, c.version), false)
	c.window.lostBy = expired
}

// SendBookmarks makes every watcher that wants bookmarks send one soon, before its interval is
// over. It does not wait.
func (c *Cache[T]) SendBookmarks() {
	c.asked.Add(1)
	c.wakeAll()
}

// Expire forgets everything before version, and ends all watches with a 410.
func (c *Cache[T]) Expire(version uint64) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	c.version = max(version, c.version)
	c.forgetAll(c.version, true)
	c.lostBy = expired
	c.mu.Unlock()
	c.wakeAll()
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

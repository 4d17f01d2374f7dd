package store

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/rv"
	"github.com/tributary-go/tributary/internal/trie"
)

// Indexer is the [Store] that keeps snapshots, with secondary indexes. The zero value is an empty
// indexer without indexes. All methods are safe for concurrent use. Writers wait for each other.
// Readers of a snapshot take no lock.
type Indexer[T Object] struct{ of Entries }

// Entries is the content of an [Indexer] as it is kept: see [Indexer.Entries].
type Entries struct {
	// now is the content as a version, from the first Snapshot after a write until the next write;
	// nil otherwise, so that writes in a row make no versions.
	now atomic.Pointer[version]

	// writing serialises writers, and is held while a list arrives or a user's function runs.
	writing sync.Mutex
	// editing is held only for the edit itself, so that a reader that needs a new version of now
	// waits for one edit and no more. Lock writing before editing.
	editing sync.Mutex
	draft   draft
	kept    *kept // the draft's, for readers: it never changes

	versioned bool // only SetResourceVersion and Replace set the version; guarded by writing
	nameless  atomic.Bool
}

// Base is the indexer itself, of a store that embeds it.
func (x *Indexer[T]) Base() *Indexer[T] { return x }

// Entries is the same store, whose readers and writers have entries.
func (x *Indexer[T]) Entries() *Entries { return &x.of }

// NewIndexer makes an empty indexer with the given indexes. It panics if one of them is nil.
func NewIndexer[T Object](indexes ...AnyIndex[T]) *Indexer[T] {
	checkIndexes("NewIndexer", indexes)
	return &Indexer[T]{Entries{draft: newDraft(erased(indexes), nil)}}
}

// NewFormed makes an empty indexer that keeps its objects in a form. It panics if the form or an
// index is nil.
func NewFormed[T Object](form Form[T], indexes ...AnyIndex[T]) *Indexer[T] {
	if null.Is(form) {
		panic("store: NewFormed: the form is nil")
	}
	checkIndexes("NewFormed", indexes)
	kept := keptIn(form)
	return &Indexer[T]{Entries{kept: kept, draft: newDraft(erased(indexes), kept)}}
}

func erased[T Object](indexes []AnyIndex[T]) (all []anyIndex) {
	for _, index := range indexes {
		all = append(all, index)
	}
	return all
}

func checkIndexes[T Object](op string, indexes []AnyIndex[T]) {
	for i, index := range indexes {
		if null.Is(index) {
			panic(fmt.Sprintf("store: %s: index %d is nil: make it with NewIndex", op, i+1))
		}
	}
}

// AddIndexes gives the indexer more indexes, which later snapshots have; one that it has already is
// ignored. It calls the functions of the new indexes for each object, and other writers wait
// meanwhile. Earlier snapshots lack the new indexes. It panics if an index is nil.
func (x *Indexer[T]) AddIndexes(indexes ...AnyIndex[T]) {
	checkIndexes("AddIndexes", indexes)
	x.of.addIndexes(erased(indexes))
}

func (x *Entries) addIndexes(indexes []anyIndex) {
	x.writing.Lock()
	defer x.writing.Unlock()
	var added []anyIndex
	for _, index := range indexes {
		if !slices.Contains(x.draft.schema, index) && !slices.Contains(added, index) {
			added = append(added, index)
		}
	}
	// Only writers change the objects, and this is one: they stand still while the indexes grow.
	writers := x.draft.indexed(added)
	x.editing.Lock()
	defer x.editing.Unlock()
	// Versions share the slice of the schema, so it is never written.
	x.draft.schema = slices.Concat(x.draft.schema, added)
	x.draft.indexes = append(x.draft.indexes, writers...)
	x.now.Store(nil)
}

// Snapshot is the content now. It is O(1) and never sees half of a change. It takes no lock if
// nothing was written since the last snapshot; otherwise it waits for at most the edit of one
// write. The write after a snapshot copies the nodes that it changes; a write after a write changes
// them in place. To look up one object for each write, use [Indexer.Get].
func (x *Indexer[T]) Snapshot() Snapshot[T] { return Snapshot[T]{x.of.version()} }

// Snapshot is the content now, of entries.
func (x *Entries) Snapshot() Snapshot[Entry] { return Snapshot[Entry]{x.version()} }

func (x *Entries) version() *version {
	if now := x.now.Load(); now != nil {
		return now
	}
	return x.seal()
}

func (x *Entries) seal() *version {
	x.editing.Lock()
	defer x.editing.Unlock()
	now := x.now.Load()
	if now == nil {
		now = x.draft.seal()
		x.now.Store(now)
	}
	return now
}

// Get returns the object that is stored under key now, without a snapshot. It waits as
// [Indexer.Snapshot] does. Several calls may see several states.
func (x *Indexer[T]) Get(key string) (obj T, ok bool) {
	entry, ok := x.of.Get(key)
	if !ok {
		return obj, false
	}
	if kept := x.of.kept; kept != nil {
		return kept.get.(func(Entry) T)(entry), true
	}
	return entry.(T), true
}

// Get returns what is stored under key now, as the store keeps it.
func (x *Entries) Get(key string) (entry Entry, ok bool) {
	hash := trie.HashString(key)
	if now := x.now.Load(); now != nil {
		return now.entries.Get(hash, key)
	}
	x.editing.Lock()
	defer x.editing.Unlock()
	return x.draft.entries.Get(hash, key)
}

// Open returns the object of an entry of this store, or of another store of the same form.
func (x *Indexer[T]) Open(entry Entry) T { return opened[T](x.of.kept, entry) }

// ResourceVersion is that of the content now, without a snapshot; see [Snapshot.ResourceVersion].
func (x *Indexer[T]) ResourceVersion() string { return x.of.ResourceVersion() }

// ResourceVersion is that of the content now.
func (x *Entries) ResourceVersion() string {
	x.editing.Lock()
	defer x.editing.Unlock()
	return x.draft.resourceVersion
}

// KeepNameless lets the indexer take objects without a name from now on, as client-go's stores do.
// All those of a namespace have one key, "namespace/", so that the last one counts. By default they
// are refused: only fakes that ignore generateName have them.
func (x *Indexer[T]) KeepNameless() { x.of.KeepNameless() }

// KeepNameless is [Indexer.KeepNameless].
func (x *Entries) KeepNameless() { x.nameless.Store(true) }

// Add stores obj, in place of an object under its key. It fails on an object without a name, except
// after [Indexer.KeepNameless].
func (x *Indexer[T]) Add(obj T) error { _, err := x.of.Put(obj); return err }

// Update is the same as [Indexer.Add].
func (x *Indexer[T]) Update(obj T) error { _, err := x.of.Put(obj); return err }

// Delete removes the object under obj's key, if there is one. The snapshot's resource version
// becomes obj's.
func (x *Indexer[T]) Delete(obj T) error { _, err := x.of.Remove(obj); return err }

// Put is [Indexer.Add], and returns the change: Old is the previous object, New the stored one. If
// the store already holds that state (equal UID, resource version and content), the stored object
// stays, and the change is [Change.Unchanged]. No other write comes between the change and its
// effect.
func (x *Indexer[T]) Put(obj T) (Change[T], error) {
	c, err := x.of.Put(obj)
	return x.change(c), err
}

// change opens a change of entries.
func (x *Indexer[T]) change(c Change[Entry]) Change[T] {
	return Change[T]{c.Key, orNone[T](x.of.kept, c.Old), orNone[T](x.of.kept, c.New)}
}

// Put stores an object in any form: as the store's readers get it, as an [*Encoded], as an entry.
func (x *Entries) Put(item Entry) (c Change[Entry], err error) {
	if err := x.check(item); err != nil {
		return c, err
	}
	var space [keySpace]byte
	key := appendKey(space[:0], item)
	hash := trie.HashBytes(key)
	x.writing.Lock()
	defer x.writing.Unlock()
	w, err := x.draft.planPut(key, hash, item)
	if err != nil {
		return c, err
	}
	x.edit(&w, x.newest(item.GetResourceVersion()))
	return w.Change, nil
}

// Entry makes the entry of an object in any form, as Put does, and does not store it.
func (x *Entries) Entry(item Entry) (Entry, error) {
	if err := x.check(item); err != nil || x.kept == nil {
		return item, err
	}
	key := KeyOf(item)
	x.writing.Lock()
	defer x.writing.Unlock()
	if held, ok := x.draft.entries.Find(trie.HashString(key), key); ok {
		return x.draft.entry(held.Key, item, held.Value)
	}
	return x.draft.entry(key, item, nil)
}

// KeepsBytes reports whether the store's form is one of bytes: then it has [Indexer.Encoded].
func (x *Entries) KeepsBytes() bool { return x.kept != nil && x.kept.closed != nil }

// Remove is [Indexer.Delete], and returns the change: Old is the object that the store held.
func (x *Indexer[T]) Remove(obj T) (Change[T], error) {
	c, err := x.of.Remove(obj)
	return x.change(c), err
}

// Remove removes an object in any form.
func (x *Entries) Remove(item Entry) (c Change[Entry], err error) {
	if err := x.check(item); err != nil {
		return c, err
	}
	key := KeyOf(item)
	hash := trie.HashString(key)
	x.writing.Lock()
	defer x.writing.Unlock()
	w := x.draft.planDelete(key, hash)
	x.edit(&w, x.newest(item.GetResourceVersion()))
	return w.Change, nil
}

// Replace makes items the whole content; see [Store]. An object that the indexer already holds with
// the same UID, resource version and content keeps its pointer, so that a [Diff] across a relist
// has only changed objects. A server can change an object's content under an equal version, by a
// CRD's new default for example: content decides. Other writers wait until items has ended; readers
// go on.
func (x *Indexer[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	return x.of.Replace(itemsOf(items), resourceVersion)
}

// itemsOf are items in any form as entries.
func itemsOf[T Entry](items iter.Seq2[T, error]) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		items(func(item T, err error) bool {
			return yield(item, err)
		})
	}
}

// Replace makes items in any form the whole content.
func (x *Entries) Replace(items iter.Seq2[Entry, error], resourceVersion func() string) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	next := x.draft.fork()
	if next.kept != nil && next.kept.lister != nil {
		items = next.kept.lister.List(items, next.entries.Len())
		defer func() { next.kept.lister.Listed(x.draft.entries.Len()) }()
	}
	if err := next.replace(items, x.check); err != nil {
		return err
	}
	// A relist may go back in resource version, after a restore of the server's data: the server's
	// word counts.
	next.resourceVersion = resourceVersion()
	x.editing.Lock()
	defer x.editing.Unlock()
	x.draft = next
	x.now.Store(nil)
	return nil
}

// Bookmark notes that the content is complete up to resourceVersion. It ignores a version older
// than the present one.
func (x *Indexer[T]) Bookmark(resourceVersion string) error { return x.of.Bookmark(resourceVersion) }

// Bookmark notes a version.
func (x *Entries) Bookmark(resourceVersion string) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	if !x.versioned {
		x.edit(&write{}, later(x.draft.resourceVersion, resourceVersion))
	}
	return nil
}

// SetResourceVersion sets the content's version, even to an older one. From then on the caller
// keeps the version: of the other methods, only Replace changes it. It is for a store that is
// filled from several watches: the version of an object then says nothing about the objects of the
// other watches.
func (x *Entries) SetResourceVersion(resourceVersion string) {
	x.writing.Lock()
	defer x.writing.Unlock()
	x.versioned = true
	x.edit(&write{}, resourceVersion)
}

// check refuses an object that the store cannot hold.
func (x *Entries) check(item Entry) error {
	switch {
	case null.Is(item):
		return errNil
	case item.GetName() == "" && !x.nameless.Load():
		return errNoName
	}
	return nil
}

var (
	errNil    = errors.New("store: the object is nil")
	errNoName = errors.New("store: the object has no metadata.name")
)

// edit does a planned write, after which the content has resourceVersion. The caller holds writing.
func (x *Entries) edit(w *write, resourceVersion string) {
	if w.Unchanged() && resourceVersion == x.draft.resourceVersion {
		return
	}
	x.editing.Lock()
	defer x.editing.Unlock()
	if x.draft.owner == 0 { // of the zero Indexer
		x.draft.owner = trie.NewOwner()
	}
	x.draft.do(w)
	x.draft.resourceVersion = resourceVersion
	if x.now.Load() != nil {
		x.now.Store(nil)
	}
}

// newest returns the content's version after the write of an object of version came. A resource
// version never goes back (invariant 1), and is not taken from an object with a version from the
// future. Versions that cannot be compared (KEP-5504) are taken as they come. The caller holds
// writing.
func (x *Entries) newest(came string) string {
	held := x.draft.resourceVersion
	if x.versioned || rv.Leaps(held, came) {
		return held
	}
	return later(held, came)
}

// later is the newer of two versions. It is came if the two cannot be compared, and held if came is
// empty.
func later(held, came string) string {
	if order, _ := Version(came).Compare(Version(held)); order < 0 || came == "" {
		return held
	}
	return came
}

package store

import (
	"iter"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/internal/trie"
)

// Closed is an indexer for a store that keeps its objects in a form of its own, such as packed
// bytes. It holds entries in place of objects: an entry has an object's namespace, name, UID and
// resource version, and stands for one state. If it has a method Key() string, the store keeps that
// string as its key, and makes none. Readers get snapshots of T, which open the entries that are
// read. The rest of an entry's [Object] methods are never called.
//
// Entries are the same state only if they are one in memory: a writer that wants a state to stay
// puts the entry that it finds with [Closed.Get]. Writers must not run at the same time.
type Closed[T Object] struct {
	entries *Indexer[Object]
	writer  closedWriter
	open    func(entry Object) T
	parts   func(entry Object) Parts
	now     atomic.Pointer[version[T]] // the last snapshot, unless a write came after it

	adding  sync.Mutex // one AddIndexes at a time
	indexes atomic.Pointer[closedIndexes[T]]
}

// closedWriter takes the writes: the entries themselves, or the result of [Closed.Through].
type closedWriter interface {
	Store[Object]
	Bookmarker
}

// closedIndexes are the declared indexes, and each as an index of entries.
type closedIndexes[T Object] struct {
	schema []AnyIndex[T]
	of     []closedIndex[T]
}

// Parts reads parts of an object at rest, without the rest. What it returns is the caller's.
type Parts interface {
	Labels() map[string]string
	// Field returns the text of a field that T has, such as spec.nodeName; see [ByField].
	Field(path string) string
}

// NewClosed makes an empty indexer. open makes the object of an entry, and parts reads parts of it;
// both must be safe for concurrent use. Without parts, the object is opened for them.
//
// An index calls its function when [Closed.Arrive] tells the object of a new entry, and opens an
// old entry only if its values may have to go. An index of a label or a field needs no object.
// NewClosed panics if open or an index is nil.
func NewClosed[T Object](open func(entry Object) T, parts func(entry Object) Parts, indexes ...AnyIndex[T]) *Closed[T] {
	if open == nil {
		panic("store: NewClosed: the function is nil")
	}
	checkIndexes("NewClosed", indexes)
	if parts == nil {
		parts = partsBy(open)
	}
	c := &Closed[T]{open: open, parts: parts}
	all := &closedIndexes[T]{schema: indexes}
	var schema []AnyIndex[Object]
	for _, index := range indexes {
		of := index.closed(open, parts)
		all.of, schema = append(all.of, of), append(schema, of.declared())
	}
	c.indexes.Store(all)
	c.entries = NewIndexer(schema...)
	c.entries.draft.entries = true
	c.writer = c.entries
	return c
}

func partsBy[T Object](open func(entry Object) T) func(entry Object) Parts {
	return func(entry Object) Parts { return whole{open(entry)} }
}

// whole is the parts of an object that was opened for them.
type whole struct{ obj Object }

func (w whole) Labels() map[string]string { return w.obj.GetLabels() }
func (w whole) Field(path string) string  { return mustField(reflect.TypeOf(w.obj), path).Of(w.obj) }

// AddIndexes adds indexes while readers and a writer are at work, as [Indexer.AddIndexes] does. An
// index with a function opens each entry once.
func (c *Closed[T]) AddIndexes(indexes ...AnyIndex[T]) {
	checkIndexes("AddIndexes", indexes)
	c.adding.Lock()
	defer c.adding.Unlock()
	held := c.indexes.Load()
	next := &closedIndexes[T]{slices.Clip(held.schema), slices.Clip(held.of)}
	var schema []AnyIndex[Object]
	for _, index := range indexes {
		if slices.Contains(next.schema, index) {
			continue
		}
		of := index.closed(c.open, c.parts)
		next.schema, next.of, schema = append(next.schema, index), append(next.of, of), append(schema, of.declared())
	}
	c.entries.AddIndexes(schema...) // before they are told of entries: it reads what they were told
	c.indexes.Store(next)
}

// Through lets each write go through the result of via, which writes into entries. It is for an
// informer, which notes each change. Call it before the first write.
func (c *Closed[T]) Through(via func(entries *Indexer[Object]) interface {
	Store[Object]
	Bookmarker
}) {
	c.writer = via(c.entries)
}

// IsFollowed reports whether writes go through another store: that asks for the final state of a
// deleted object as an entry.
func (c *Closed[T]) IsFollowed() bool { return c.writer != closedWriter(c.entries) }

// Open returns the object of an entry.
func (c *Closed[T]) Open(entry Object) T { return c.open(entry) }

// Get returns the entry that is stored under key now; see [Indexer.Get].
func (c *Closed[T]) Get(key string) (entry Object, ok bool) { return c.entries.Get(key) }

// Entries is the content now, closed.
func (c *Closed[T]) Entries() Snapshot[Object] { return c.entries.Snapshot() }

// Snapshot is the content now; see [Indexer.Snapshot]. Each read of an object opens its entry.
func (c *Closed[T]) Snapshot() Snapshot[T] {
	schema := c.indexes.Load().schema // before the entries, which may have more
	of := c.entries.Snapshot()
	if now := c.now.Load(); now != nil && now.closed.of == of.at && len(now.schema) == len(schema) {
		return Snapshot[T]{now}
	}
	now := &version[T]{schema: schema, resourceVersion: of.at.resourceVersion, closed: &closed[T]{of.at, c.open, c.parts}}
	c.now.Store(now)
	return Snapshot[T]{now}
}

// ResourceVersion is that of the content now, without a snapshot.
func (c *Closed[T]) ResourceVersion() string { return c.entries.ResourceVersion() }

// AsksObjects reports whether an index asks for the objects of new entries: one that was declared
// with a function.
func (c *Closed[T]) AsksObjects() bool { return c.asks(objectNeed) }

// AsksParts reports whether an index asks for parts of new entries: a label or a field.
func (c *Closed[T]) AsksParts() bool { return c.asks(partNeed) }

func (c *Closed[T]) asks(need need) bool {
	for _, index := range c.indexes.Load().of {
		if index.needs() == need {
			return true
		}
	}
	return false
}

// Arrive tells the indexes the object of a new entry, which the next write puts. An entry of which
// they were not told is opened.
func (c *Closed[T]) Arrive(entry Object, obj T) {
	for _, index := range c.indexes.Load().of {
		index.arrive(entry, obj)
	}
}

// ArriveParts tells the indexes of labels and fields the parts of a new entry, as Arrive does.
func (c *Closed[T]) ArriveParts(entry Object, parts Parts) {
	for _, index := range c.indexes.Load().of {
		index.arriveParts(entry, parts)
	}
}

// Put stores an entry, as [Indexer.Add] does.
func (c *Closed[T]) Put(entry Object) error {
	defer c.written()
	return c.writer.Add(entry)
}

// Remove removes the entry under entry's key, as [Indexer.Delete] does.
func (c *Closed[T]) Remove(entry Object) error {
	defer c.written()
	return c.writer.Delete(entry)
}

// Replace makes entries the whole content, as [Indexer.Replace] does.
func (c *Closed[T]) Replace(entries iter.Seq2[Object, error], resourceVersion func() string) error {
	defer c.written()
	return c.writer.Replace(entries, resourceVersion)
}

// Bookmark notes a version, as [Indexer.Bookmark] does.
func (c *Closed[T]) Bookmark(resourceVersion string) error {
	defer c.written()
	return c.writer.Bookmark(resourceVersion)
}

// AnotherHistory passes on what [Historian] says.
func (c *Closed[T]) AnotherHistory() {
	if to, ok := c.writer.(Historian); ok {
		to.AnotherHistory()
	}
}

// KeepNameless is [Indexer.KeepNameless].
func (c *Closed[T]) KeepNameless() { c.entries.KeepNameless() }

// written drops the values of arrived entries, and the snapshot, which would keep old entries.
func (c *Closed[T]) written() {
	for _, index := range c.indexes.Load().of {
		index.forget()
	}
	if c.now.Load() != nil {
		c.now.Store(nil)
	}
}

// closed is the content of a snapshot of entries.
type closed[T Object] struct {
	of    *version[Object]
	open  func(entry Object) T
	parts func(entry Object) Parts
}

func (c *closed[T]) get(key string) (obj T, ok bool) {
	entry, ok := Snapshot[Object]{c.of}.Get(key)
	if !ok {
		return obj, false
	}
	return c.open(entry), true
}

func (c *closed[T]) all() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for key, entry := range c.of.objects.All() {
			if !yield(key, c.open(entry)) {
				return
			}
		}
	}
}

// selected yields the objects of a selection. It opens no other entries.
func (c *closed[T]) selected(namespace string, selector labels.Selector, requirements labels.Requirements) iter.Seq[T] {
	entries := Snapshot[Object]{c.of}.smallest(namespace, requirements)
	return func(yield func(T) bool) {
		for entry := range entries {
			if namespace != metav1.NamespaceAll && entry.GetNamespace() != namespace {
				continue
			}
			if len(requirements) > 0 && !selector.Matches(labels.Set(c.parts(entry).Labels())) {
				continue
			}
			if !yield(c.open(entry)) {
				return
			}
		}
	}
}

// isClosed reports whether a snapshot is one of a [Closed].
func (s Snapshot[T]) isClosed() bool { return s.at != nil && s.at.closed != nil }

// open is the snapshot with every entry opened.
func (s Snapshot[T]) open() Snapshot[T] {
	return Snapshot[T]{&version[T]{objects: s.objects()}}
}

// diffClosed is [Diff] if one of the snapshots is of a [Closed]. It compares entries, and opens
// both sides of a change. Objects of another store are other objects.
func diffClosed[T Object](before, after Snapshot[T]) iter.Seq[Change[T]] {
	if before.at != nil && !before.isClosed() || after.at != nil && !after.isClosed() {
		return Diff(before.open(), after.open())
	}
	var was, now Snapshot[Object]
	var open func(Object) T
	if before.at != nil {
		was.at, open = before.at.closed.of, before.at.closed.open
	}
	if after.at != nil {
		now.at, open = after.at.closed.of, after.at.closed.open
	}
	return func(yield func(Change[T]) bool) {
		for c := range Diff(was, now) {
			change := Change[T]{Key: c.Key}
			if c.Old != nil {
				change.Old = open(c.Old)
			}
			if c.New != nil {
				change.New = open(c.New)
			}
			if !yield(change) {
				return
			}
		}
	}
}

// opened is the content with every entry opened.
func (c *closed[T]) opened() trie.Map[string, T] {
	var entries []trie.Entry[string, T]
	var hashes []uint64
	for key, obj := range c.all() {
		entries, hashes = append(entries, trie.Entry[string, T]{Key: key, Value: obj}), append(hashes, trie.HashString(key))
	}
	return trie.Writer[string, T]{Hash: trie.HashString, Owner: trie.NewOwner()}.Build(entries, hashes)
}

// closedIndex is an index of entries, by the values of their objects.
type closedIndex[T Object] interface {
	declared() AnyIndex[Object]
	needs() need
	arrive(entry Object, obj T)
	arriveParts(entry Object, parts Parts)
	forget()
}

// need is the part of an object that an index asks for.
type need int

const (
	objectNeed need = iota
	partNeed
	noNeed // of the namespace, which an entry has
)

type closedIndexOf[T Object, K comparable] struct {
	of      *Index[T, K]
	entries *Index[Object, K]
	arrived map[Object][]K
	values  func(Parts) []K // nil for an index that asks for no parts
}

// closed declares the index for entries.
func (x *Index[T, K]) closed(open func(entry Object) T, parts func(entry Object) Parts) closedIndex[T] {
	c := &closedIndexOf[T, K]{of: x}
	var values func(entry Object) []K
	switch c.needs() {
	case noNeed:
		values = any(ByNamespace[Object]().values).(func(Object) []K)
	case partNeed:
		c.values = any(x.of.read).(func(Parts) []K)
		values = func(entry Object) []K { return c.values(parts(entry)) }
	default:
		values = func(entry Object) []K { return x.values(open(entry)) }
	}
	c.entries = &Index[Object, K]{name: x.name, hash: x.hash, of: x.of, values: func(entry Object) []K {
		if known, ok := c.arrived[entry]; ok {
			return known
		}
		return values(entry)
	}}
	return c
}

func (c *closedIndexOf[T, K]) declared() AnyIndex[Object] { return c.entries }

func (c *closedIndexOf[T, K]) needs() need {
	switch {
	case c.of.of.namespace:
		return noNeed
	case c.of.of != attribute{}:
		return partNeed
	}
	return objectNeed
}

func (c *closedIndexOf[T, K]) arrive(entry Object, obj T) {
	if c.needs() != noNeed {
		c.note(entry, c.of.values(obj))
	}
}

func (c *closedIndexOf[T, K]) arriveParts(entry Object, parts Parts) {
	if c.values != nil {
		c.note(entry, c.values(parts))
	}
}

func (c *closedIndexOf[T, K]) note(entry Object, values []K) {
	if c.arrived == nil {
		c.arrived = map[Object][]K{}
	}
	c.arrived[entry] = values
}

func (c *closedIndexOf[T, K]) forget() {
	if len(c.arrived) > 1 {
		c.arrived = nil // of a list: a map never shrinks
		return
	}
	clear(c.arrived)
}

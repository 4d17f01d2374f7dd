package store

import (
	"iter"
	"slices"

	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/internal/trie"
)

// draft is the writer's version of the content. The writer changes in place the nodes that carry
// the draft's owner, which no snapshot holds. Each snapshot gives the draft a new owner.
type draft[T Object] struct {
	schema          []AnyIndex[T]
	objects         trie.Map[string, T]
	indexes         []indexWriter[T] // per entry of schema
	resourceVersion string
	owner           uint64 // of a [trie.Writer]
	entries         bool   // objects are the entries of a [Closed]
}

func newDraft[T Object](schema []AnyIndex[T]) draft[T] {
	d := draft[T]{schema: schema, indexes: make([]indexWriter[T], len(schema)), owner: trie.NewOwner()}
	for i, index := range schema {
		d.indexes[i] = index.writer()
	}
	return d
}

// fork is a draft that begins with the same content and shares no node that either may change.
func (d *draft[T]) fork() draft[T] {
	// A snapshot taken meanwhile gives d another owner: fork does not read that field.
	out := draft[T]{schema: d.schema, objects: d.objects, resourceVersion: d.resourceVersion, entries: d.entries,
		indexes: make([]indexWriter[T], len(d.indexes)), owner: trie.NewOwner()}
	for i, index := range d.indexes {
		out.indexes[i] = index.fork()
	}
	return out
}

// seal is the draft as a version for readers: from now on a write copies its nodes before it
// changes them.
func (d *draft[T]) seal() *version[T] {
	v := &version[T]{objects: d.objects, schema: d.schema, resourceVersion: d.resourceVersion}
	v.indexes = v.few[:0]
	for _, index := range d.indexes {
		v.indexes = append(v.indexes, index.content())
	}
	d.owner = trie.NewOwner()
	return v
}

func (d *draft[T]) writer() trie.Writer[string, T] {
	return trie.Writer[string, T]{Hash: trie.HashString, Owner: d.owner}
}

// write is one planned write. Planning calls the user's functions and does all that may take long.
type write[T Object] struct {
	Change[T]
	hash  uint64
	place trie.Place[string, T] // of the old object
}

// planPut plans to store obj under key, which has the given hash.
func (d *draft[T]) planPut(key []byte, hash uint64, obj T) write[T] {
	place, held := trie.PlaceOfBytes(d.objects, hash, key)
	w := write[T]{Change: Change[T]{New: obj}, hash: hash, place: place}
	if !held {
		w.Key = d.ownKey(key, obj)
	} else if w.Key, w.Old = place.Key, place.Value; pointer.Same(w.Old, obj) || !d.entries && sameState(w.Old, obj) {
		w.New = w.Old
		return w
	}
	for _, index := range d.indexes {
		index.plan(hash, w.Old, obj)
	}
	return w
}

// planDelete plans to remove the object under key, which has the given hash.
func (d *draft[T]) planDelete(key string, hash uint64) write[T] {
	w := write[T]{Change: Change[T]{Key: key}, hash: hash}
	there, held := d.objects.Find(hash, key)
	if !held {
		return w
	}
	w.Key, w.Old = there.Key, there.Value
	for _, index := range d.indexes {
		index.plan(hash, w.Old, w.New)
	}
	return w
}

// do does a planned write.
func (d *draft[T]) do(w *write[T]) {
	switch {
	case w.Unchanged():
		return
	case pointer.None(w.New):
		d.objects, _, _ = d.writer().Delete(d.objects, w.hash, w.Key)
	case w.place.Owned(d.owner):
		w.place.Value = w.New
	default:
		d.objects, _, _ = d.writer().Set(d.objects, w.hash, w.Key, w.New)
	}
	for _, index := range d.indexes {
		index.write(d.owner)
	}
}

// replace makes items the content. check refuses objects.
func (d *draft[T]) replace(items iter.Seq2[T, error], check func(T) error) error {
	if d.objects.Len() == 0 {
		return d.fill(items, check)
	}
	return d.overwrite(items, check)
}

// fill makes items the content, if there was none.
func (d *draft[T]) fill(items iter.Seq2[T, error], check func(T) error) error {
	var entries []trie.Entry[string, T]
	var hashes []uint64
	for obj, err := range items {
		if err != nil {
			return err
		}
		if err := check(obj); err != nil {
			return err
		}
		key := d.keyOf(obj)
		entries, hashes = append(entries, trie.Entry[string, T]{Key: key, Value: obj}), append(hashes, trie.HashString(key))
	}
	d.objects = d.writer().Build(entries, hashes)
	if len(d.indexes) == 0 {
		return nil
	}
	// Build has left both slices in disorder, and the trie has each key once.
	d.index(d.owner, d.indexes, entries[:0], hashes[:0])
	return nil
}

// index fills writers with the draft's objects, and uses the space of entries and hashes.
func (d *draft[T]) index(owner uint64, writers []indexWriter[T], entries []trie.Entry[string, T], hashes []uint64) {
	for key, obj := range d.objects.All() {
		entries, hashes = append(entries, trie.Entry[string, T]{Key: key, Value: obj}), append(hashes, trie.HashString(key))
	}
	for _, index := range writers {
		index.build(owner, entries, hashes)
	}
}

// indexed returns the writers of further indexes, filled with the draft's objects. Their nodes have
// an owner of their own, since a snapshot may meanwhile give the draft another owner.
func (d *draft[T]) indexed(indexes []AnyIndex[T]) []indexWriter[T] {
	writers := make([]indexWriter[T], len(indexes))
	for i, index := range indexes {
		writers[i] = index.writer()
	}
	size := d.objects.Len()
	d.index(trie.NewOwner(), writers, make([]trie.Entry[string, T], 0, size), make([]uint64, 0, size))
	return writers
}

// overwrite makes items the content, and keeps each object that comes again unchanged.
func (d *draft[T]) overwrite(items iter.Seq2[T, error], check func(T) error) error {
	before := d.objects // never changes: it has no node of the owner's
	// Servers list in the order of keys, which needs no sorting.
	seen, ascending := make([]string, 0, before.Len()), true
	var space [keySpace]byte
	for obj, err := range items {
		if err != nil {
			return err
		}
		if err := check(obj); err != nil {
			return err
		}
		key := appendKey(space[:0], obj)
		w := d.planPut(key, trie.HashBytes(key), obj)
		d.do(&w)
		ascending = ascending && (len(seen) == 0 || seen[len(seen)-1] < w.Key)
		seen = append(seen, w.Key)
	}
	if !ascending {
		slices.Sort(seen)
		seen = slices.Compact(seen)
	}
	if d.objects.Len() == len(seen) {
		return nil
	}
	for key := range before.All() {
		if _, ok := slices.BinarySearch(seen, key); !ok {
			w := d.planDelete(key, trie.HashString(key))
			d.do(&w)
		}
	}
	return nil
}

// sameState reports whether two objects are the same state of the same object: equal UID, equal and
// known resource version, equal content. Only equal versions are compared by content, since
// different ones are a change already.
func sameState[T Object](a, b T) bool {
	return pointer.Same(a, b) || a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion() &&
		a.GetUID() != "" && a.GetUID() == b.GetUID() && content.Equal(a, b)
}

// keyed is an entry of a [Closed] that has its key.
type keyed interface{ Key() string }

// keyOf is the key under which obj is stored.
func (d *draft[T]) keyOf(obj T) string {
	if d.entries {
		if entry, ok := any(obj).(keyed); ok {
			return entry.Key()
		}
	}
	return KeyOf(obj)
}

// ownKey is keyOf an object whose key is in a buffer.
func (d *draft[T]) ownKey(key []byte, obj T) string {
	if d.entries {
		return d.keyOf(obj)
	}
	return string(key)
}

// keySpace is room for most keys: a write builds the key of its object on the stack.
const keySpace = 128

// appendKey appends the key of obj to buffer.
func appendKey(buffer []byte, obj Object) []byte {
	if namespace := obj.GetNamespace(); namespace != "" {
		buffer = append(append(buffer, namespace...), '/')
	}
	return append(buffer, obj.GetName()...)
}

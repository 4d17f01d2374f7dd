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
type draft struct {
	schema          []anyIndex
	entries         trie.Map[string, Entry]
	indexes         []indexWriter // per entry of schema
	resourceVersion string
	owner           uint64 // of a [trie.Writer]
	kept            *kept  // nil if entries are objects

	was, now reading // of the write that is planned
}

func newDraft(schema []anyIndex, kept *kept) draft {
	d := draft{schema: schema, kept: kept, indexes: make([]indexWriter, len(schema)), owner: trie.NewOwner()}
	for i, index := range schema {
		d.indexes[i] = index.writer()
	}
	return d
}

// fork is a draft that begins with the same content and shares no node that either may change.
func (d *draft) fork() draft {
	// A snapshot taken meanwhile gives d another owner: fork does not read that field.
	out := draft{schema: d.schema, entries: d.entries, resourceVersion: d.resourceVersion, kept: d.kept,
		indexes: make([]indexWriter, len(d.indexes)), owner: trie.NewOwner()}
	for i, index := range d.indexes {
		out.indexes[i] = index.fork()
	}
	return out
}

// seal is the draft as a version for readers: from now on a write copies its nodes before it
// changes them.
func (d *draft) seal() *version {
	v := &version{entries: d.entries, schema: d.schema, resourceVersion: d.resourceVersion, kept: d.kept}
	v.indexes = v.few[:0]
	for _, index := range d.indexes {
		v.indexes = append(v.indexes, index.content())
	}
	d.owner = trie.NewOwner()
	return v
}

func (d *draft) writer() trie.Writer[string, Entry] {
	return trie.Writer[string, Entry]{Hash: trie.HashString, Owner: d.owner}
}

// write is one planned write. Planning calls the user's functions and does all that may take long.
type write struct {
	Change[Entry]
	hash  uint64
	place trie.Place[string, Entry] // of the old object
}

// planPut plans to store item under key, which has the given hash.
func (d *draft) planPut(key []byte, hash uint64, item Entry) (w write, err error) {
	place, held := trie.PlaceOfBytes(d.entries, hash, key)
	w.hash, w.place = hash, place
	if !held {
		w.Key = string(key)
	} else {
		w.Key, w.Old = place.Key, place.Value
	}
	if err := d.arrive(w.Key, item, w.Old); err != nil {
		return w, err
	}
	w.New = d.now.entry
	if len(d.indexes) == 0 || w.New == w.Old {
		d.planned()
		return w, nil
	}
	defer d.planned()
	d.plan(hash)
	return w, nil
}

// arrive makes the entry of an object that comes: held if that is the same state.
func (d *draft) arrive(key string, item, held Entry) error {
	if d.kept == nil {
		if held != nil && sameState(held, item) {
			item = held
		}
		d.was.entry, d.now.entry = held, item
		return nil
	}
	entry, from, err := d.kept.arrive(key, item, held)
	d.was, d.now = reading{kept: d.kept, entry: held}, reading{d.kept, entry, from}
	return err
}

// entry makes the entry of an object that is not stored.
func (d *draft) entry(key string, item, held Entry) (Entry, error) {
	defer d.planned()
	err := d.arrive(key, item, held)
	return d.now.entry, err
}

// planned ends the use of the readings.
func (d *draft) planned() {
	if d.kept == nil {
		d.was.entry, d.now.entry = nil, nil
		return
	}
	if d.now.from != nil {
		d.now.from.Done()
	}
	d.was, d.now = reading{}, reading{}
}

// plan plans the edits of the indexes.
func (d *draft) plan(hash uint64) {
	for _, index := range d.indexes {
		index.plan(hash, &d.was, &d.now)
	}
}

// planDelete plans to remove the object under key, which has the given hash.
func (d *draft) planDelete(key string, hash uint64) write {
	w := write{Change: Change[Entry]{Key: key}, hash: hash}
	there, held := d.entries.Find(hash, key)
	if !held {
		return w
	}
	w.Key, w.Old = there.Key, there.Value
	d.was = reading{kept: d.kept, entry: w.Old}
	defer d.planned()
	d.plan(hash)
	return w
}

// do does a planned write.
func (d *draft) do(w *write) {
	switch {
	case w.Unchanged():
		return
	case w.New == nil:
		d.entries, _, _ = d.writer().Delete(d.entries, w.hash, w.Key)
	case w.place.Owned(d.owner):
		w.place.Value = w.New
	default:
		d.entries, _, _ = d.writer().Set(d.entries, w.hash, w.Key, w.New)
	}
	for _, index := range d.indexes {
		index.write(d.owner)
	}
}

// replace makes items the content. check refuses objects.
func (d *draft) replace(items iter.Seq2[Entry, error], check func(Entry) error) error {
	if d.entries.Len() == 0 {
		return d.fill(items, check)
	}
	return d.overwrite(items, check)
}

// fill makes items the content, if there was none.
func (d *draft) fill(items iter.Seq2[Entry, error], check func(Entry) error) error {
	var entries []trie.Entry[string, Entry]
	var hashes []uint64
	for item, err := range items {
		if err != nil {
			return err
		}
		if err := check(item); err != nil {
			return err
		}
		key := KeyOf(item)
		if err := d.arrive(key, item, nil); err != nil {
			return err
		}
		hash := trie.HashString(key)
		entries, hashes = append(entries, trie.Entry[string, Entry]{Key: key, Value: d.now.entry}), append(hashes, hash)
		d.gather(d.indexes, hash)
	}
	d.entries = d.writer().Build(entries, hashes)
	if d.entries.Len() < len(entries) { // a key came twice
		d.indexes = d.indexed(d.schema)
		return nil
	}
	for _, index := range d.indexes {
		index.build(d.owner)
	}
	return nil
}

// gather has writers take in the entry that is read.
func (d *draft) gather(writers []indexWriter, hash uint64) {
	defer d.planned()
	for _, index := range writers {
		index.gather(hash, &d.now)
	}
}

// indexed returns the writers of further indexes, filled with the draft's entries. Their nodes have
// an owner of their own, since a snapshot may meanwhile give the draft another owner.
func (d *draft) indexed(indexes []anyIndex) []indexWriter {
	writers := make([]indexWriter, len(indexes))
	for i, index := range indexes {
		writers[i] = index.writer()
	}
	for key, entry := range d.entries.All() {
		d.now = reading{kept: d.kept, entry: entry}
		d.gather(writers, trie.HashString(key))
	}
	owner := trie.NewOwner()
	for _, index := range writers {
		index.build(owner)
	}
	return writers
}

// overwrite makes items the content, and keeps each object that comes again unchanged.
func (d *draft) overwrite(items iter.Seq2[Entry, error], check func(Entry) error) error {
	before := d.entries // never changes: it has no node of the owner's
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
		w, err := d.planPut(key, trie.HashBytes(key), obj)
		if err != nil {
			return err
		}
		d.do(&w)
		ascending = ascending && (len(seen) == 0 || seen[len(seen)-1] < w.Key)
		seen = append(seen, w.Key)
	}
	if !ascending {
		slices.Sort(seen)
		seen = slices.Compact(seen)
	}
	if d.entries.Len() == len(seen) {
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
func sameState(a, b Entry) bool {
	return pointer.Same(a, b) || a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion() &&
		a.GetUID() != "" && a.GetUID() == b.GetUID() && content.Equal(a, b)
}

// keySpace is room for most keys: a write builds the key of its object on the stack.
const keySpace = 128

// appendKey appends the key of obj to buffer.
func appendKey(buffer []byte, obj Entry) []byte {
	if namespace := obj.GetNamespace(); namespace != "" {
		buffer = append(append(buffer, namespace...), '/')
	}
	return append(buffer, obj.GetName()...)
}

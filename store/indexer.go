package store

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/rv"
	"github.com/tributary-go/tributary/internal/trie"
)

// Indexer is the [Store] that keeps snapshots, with secondary indexes. The zero value is an empty
// indexer without indexes. All methods are safe for concurrent use: readers take no lock, writers
// wait for each other.
type Indexer[T Object] struct {
	now atomic.Pointer[version[T]]

	writing sync.Mutex // serialises writers
	schema  []AnyIndex[T]
}

// NewIndexer makes an empty indexer with the given indexes. It panics if one of them is nil.
func NewIndexer[T Object](indexes ...AnyIndex[T]) *Indexer[T] {
	for i, index := range indexes {
		if null.Is(index) {
			panic(fmt.Sprintf("store: NewIndexer: index %d is nil: make it with NewIndex", i+1))
		}
	}
	return &Indexer[T]{schema: indexes}
}

// Snapshot is the content now. It is O(1), takes no lock, and never sees half of a change.
func (x *Indexer[T]) Snapshot() Snapshot[T] { return Snapshot[T]{x.now.Load()} }

// Add stores obj, over whatever is there under its key. It fails on an object without a name.
func (x *Indexer[T]) Add(obj T) error { _, err := x.put("add", obj); return err }

// Update does what [Indexer.Add] does.
func (x *Indexer[T]) Update(obj T) error { _, err := x.put("update", obj); return err }

// Delete removes what is stored under obj's key; it is no error when nothing is. The snapshot's
// resource version becomes obj's.
func (x *Indexer[T]) Delete(obj T) error { _, err := x.Remove(obj); return err }

// Put is [Indexer.Add] that tells what it changed, for who passes changes on: Old is what was
// there, New what is there now. If the store already holds that state (equal UID, resource version
// and content), the stored object stays, and the change is [Change.Unchanged]. The change and its
// effect belong to one instant, whoever else writes.
func (x *Indexer[T]) Put(obj T) (Change[T], error) { return x.put("put", obj) }

// Remove is [Indexer.Delete] that tells what it changed: Old is what was there, by the store's own
// account.
func (x *Indexer[T]) Remove(obj T) (Change[T], error) {
	key, err := keyForWrite("delete", obj)
	if err != nil {
		return Change[T]{}, err
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	tx := x.begin(0)
	change := tx.delete(key, trie.HashString(key))
	x.commit(tx, newest(tx.resourceVersion, obj.GetResourceVersion()))
	return change, nil
}

// Replace makes items the whole content; see [Store]. An object that the indexer already holds with
// the same UID, resource version and content keeps its pointer, so that a [Diff] across a relist
// shows just what changed. A server can change an object's content under an equal version, by a
// CRD's new default for example: content decides. Other writers wait until items has ended; readers
// go on.
func (x *Indexer[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	tx := x.begin(trie.NewOwner())
	fill := tx.overwrite
	if tx.objects.Len() == 0 {
		fill = tx.fill
	}
	if err := fill(items); err != nil {
		return err
	}
	// A relist may go back in resource version, after a restore of the server's data: what the
	// server says counts.
	x.commit(tx, resourceVersion())
	return nil
}

// Bookmark notes that the content is complete up to resourceVersion. An older one than the present
// is ignored.
func (x *Indexer[T]) Bookmark(resourceVersion string) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	tx := x.begin(0)
	x.commit(tx, later(tx.resourceVersion, resourceVersion))
	return nil
}

func (x *Indexer[T]) put(op string, obj T) (Change[T], error) {
	key, err := keyForWrite(op, obj)
	if err != nil {
		return Change[T]{}, err
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	tx := x.begin(0)
	change := tx.put(key, trie.HashString(key), obj)
	x.commit(tx, newest(tx.resourceVersion, obj.GetResourceVersion()))
	return change, nil
}

// transaction is a version in the making. Its indexes are the last version's own until the first of
// them changes.
type transaction[T Object] struct {
	version[T]
	owner uint64 // of a [trie.Writer]: 0 for a single write
	own   bool   // indexes is this transaction's
}

func (x *Indexer[T]) begin(owner uint64) transaction[T] {
	tx := transaction[T]{owner: owner}
	if now := x.now.Load(); now != nil {
		tx.version = *now
		return tx
	}
	tx.schema, tx.own = x.schema, true
	tx.indexes = make([]any, len(x.schema))
	for i, index := range x.schema {
		tx.indexes[i] = index.empty()
	}
	return tx
}

// commit makes the transaction the content, as of resourceVersion.
func (x *Indexer[T]) commit(tx transaction[T], resourceVersion string) {
	tx.resourceVersion = resourceVersion
	now := tx.version
	x.now.Store(&now)
}

func (tx *transaction[T]) objectsWriter() trie.Writer[string, T] {
	return trie.Writer[string, T]{Hash: trie.HashString, Owner: tx.owner}
}

func (tx *transaction[T]) put(key string, hash uint64, obj T) Change[T] {
	there, held := tx.objects.Find(hash, key)
	if held {
		key = there.Key
		if sameState(there.Value, obj) {
			return Change[T]{Key: key, Old: there.Value, New: there.Value}
		}
	}
	tx.objects, _, _ = tx.objectsWriter().Set(tx.objects, hash, key, obj)
	tx.replace(hash, there.Value, obj)
	return Change[T]{Key: key, Old: there.Value, New: obj}
}

func (tx *transaction[T]) delete(key string, hash uint64) Change[T] {
	now, was, held := tx.objectsWriter().Delete(tx.objects, hash, key)
	if !held {
		return Change[T]{Key: key}
	}
	var none T
	tx.objects = now
	tx.replace(hash, was.Value, none)
	return Change[T]{Key: was.Key, Old: was.Value}
}

// fill makes items the content, where there was none.
func (tx *transaction[T]) fill(items iter.Seq2[T, error]) error {
	var entries []trie.Entry[string, T]
	var hashes []uint64
	for obj, err := range items {
		if err != nil {
			return err
		}
		key, err := keyForWrite("replace", obj)
		if err != nil {
			return err
		}
		entries, hashes = append(entries, trie.Entry[string, T]{Key: key, Value: obj}), append(hashes, trie.HashString(key))
	}
	tx.objects = tx.objectsWriter().Build(entries, hashes)
	indexes := make([]any, len(tx.schema))
	for i, index := range tx.schema {
		indexes[i] = index.built(tx.objects)
	}
	tx.indexes = indexes
	return nil
}

// overwrite makes items the content, changing what is there where it differs.
func (tx *transaction[T]) overwrite(items iter.Seq2[T, error]) error {
	before := tx.objects
	seen, ascending := make([]string, 0, before.Len()), true // servers list in the order of keys
	for obj, err := range items {
		if err != nil {
			return err
		}
		key, err := keyForWrite("replace", obj)
		if err != nil {
			return err
		}
		key = tx.put(key, trie.HashString(key), obj).Key
		ascending = ascending && (len(seen) == 0 || seen[len(seen)-1] < key)
		seen = append(seen, key)
	}
	if !ascending {
		slices.Sort(seen)
		seen = slices.Compact(seen)
	}
	if tx.objects.Len() == len(seen) {
		return nil
	}
	for key := range before.All() {
		if _, ok := slices.BinarySearch(seen, key); !ok {
			tx.delete(key, trie.HashString(key))
		}
	}
	return nil
}

// replace brings the indexes up to a change.
func (tx *transaction[T]) replace(hash uint64, old, obj T) {
	if !tx.own {
		tx.indexes, tx.own = slices.Clone(tx.indexes), true
	}
	for i, index := range tx.schema {
		tx.indexes[i] = index.replaced(tx.indexes[i], tx.owner, hash, old, obj)
	}
}

// sameState reports whether two objects are the same state of the same object: equal UID, equal and
// known resource version, equal content. Only equal versions are compared by content, since
// different ones are a change already.
func sameState[T Object](a, b T) bool {
	return a == b || a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion() &&
		a.GetUID() != "" && a.GetUID() == b.GetUID() && content.Equal(a, b)
}

// newest keeps a resource version from going back (invariant 1), and from being taken from an
// object with a version from the future. Versions that cannot be compared (KEP-5504) are taken as
// they come.
func newest(held, came string) string {
	if rv.Leaps(held, came) {
		return held
	}
	return later(held, came)
}

func keyForWrite[T Object](op string, obj T) (string, error) {
	var none T
	if obj == none {
		return "", fmt.Errorf("store: %s: the object is nil", op)
	}
	if obj.GetName() == "" {
		return "", fmt.Errorf("store: %s: %w", op, errNoName)
	}
	return KeyOf(obj), nil
}

var errNoName = errors.New("the object has no metadata.name")

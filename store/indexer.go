package store

import (
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/tributary-go/tributary/internal/trie"
)

// Indexer is the [Store] that keeps snapshots, with secondary indexes. The zero value is an empty indexer without
// indexes. All methods are safe for concurrent use: readers take no lock, writers wait for each other.
type Indexer[T Object] struct {
	now atomic.Pointer[version[T]]

	writing sync.Mutex // serialises writers
	schema  []AnyIndex[T]
}

// NewIndexer makes an empty indexer with the given indexes.
func NewIndexer[T Object](indexes ...AnyIndex[T]) *Indexer[T] {
	return &Indexer[T]{schema: indexes}
}

// Snapshot is the content now. It is O(1), takes no lock, and never sees half of a change.
func (x *Indexer[T]) Snapshot() Snapshot[T] { return Snapshot[T]{x.now.Load()} }

// Add stores obj, over whatever is there under its key. It fails on an object without a name.
func (x *Indexer[T]) Add(obj T) error { _, err := x.put("add", obj); return err }

// Update does what [Indexer.Add] does.
func (x *Indexer[T]) Update(obj T) error { _, err := x.put("update", obj); return err }

// Delete removes what is stored under obj's key; it is no error when nothing is. The snapshot's resource version
// becomes obj's.
func (x *Indexer[T]) Delete(obj T) error { _, err := x.Remove(obj); return err }

// Put is [Indexer.Add] that tells what it changed, for who passes changes on: Old is what was there, New what is there
// now. Where obj is the state that the store already holds (equal UID and resource version), that one stays, and the
// change is [Change.Unchanged]. The change and its effect belong to one instant, whoever else writes.
func (x *Indexer[T]) Put(obj T) (Change[T], error) { return x.put("put", obj) }

// Remove is [Indexer.Delete] that tells what it changed: Old is what was there, by the store's own account.
func (x *Indexer[T]) Remove(obj T) (Change[T], error) {
	return x.change("delete", obj, (*transaction[T]).delete)
}

// Replace makes items the whole content; see [Store]. An object that the indexer already holds with the same UID
// and resource version keeps its pointer, so that a [Diff] across a relist shows just what changed. Other writers
// wait until items has ended; readers go on.
func (x *Indexer[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	tx := x.begin()
	seen := make(map[string]struct{}, tx.objects.Len())
	for obj, err := range items {
		if err != nil {
			return err
		}
		key, err := keyForWrite("replace", obj)
		if err != nil {
			return err
		}
		tx.put(key, obj)
		seen[key] = struct{}{}
	}
	if tx.objects.Len() > len(seen) {
		for key := range x.Snapshot().All() {
			if _, ok := seen[key]; !ok {
				var none T
				tx.delete(key, none)
			}
		}
	}
	// A relist may go back in resource version, after a restore of the server's data: what the server says counts.
	tx.resourceVersion = resourceVersion()
	x.now.Store(tx.commit())
	return nil
}

// Bookmark notes that the content is complete up to resourceVersion. An older one than the present is ignored.
func (x *Indexer[T]) Bookmark(resourceVersion string) error {
	x.writing.Lock()
	defer x.writing.Unlock()
	tx := x.begin()
	tx.resourceVersion = newest(tx.resourceVersion, resourceVersion)
	x.now.Store(tx.commit())
	return nil
}

func (x *Indexer[T]) put(op string, obj T) (Change[T], error) {
	return x.change(op, obj, (*transaction[T]).put)
}

func (x *Indexer[T]) change(op string, obj T, do func(tx *transaction[T], key string, obj T) Change[T]) (Change[T], error) {
	key, err := keyForWrite(op, obj)
	if err != nil {
		return Change[T]{}, err
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	tx := x.begin()
	done := do(tx, key, obj)
	tx.resourceVersion = newest(tx.resourceVersion, obj.GetResourceVersion())
	x.now.Store(tx.commit())
	return done, nil
}

// transaction is a version in the making.
type transaction[T Object] struct {
	objects         *trie.Edit[string, T]
	indexes         []indexEdit[T]
	schema          []AnyIndex[T]
	resourceVersion string
}

func (x *Indexer[T]) begin() *transaction[T] {
	tx := &transaction[T]{schema: x.schema, indexes: make([]indexEdit[T], len(x.schema))}
	now := x.now.Load()
	if now == nil {
		now = &version[T]{}
	}
	tx.objects, tx.resourceVersion = now.objects.Edit(), now.resourceVersion
	for i, index := range x.schema {
		from := index.empty()
		if now.indexes != nil {
			from = now.indexes[i]
		}
		tx.indexes[i] = index.edit(from)
	}
	return tx
}

func (tx *transaction[T]) put(key string, obj T) Change[T] {
	old, held := tx.objects.Get(key)
	if held && sameVersion(old, obj) {
		return Change[T]{Key: key, Old: old, New: old}
	}
	tx.objects.Set(key, obj)
	for _, index := range tx.indexes {
		index.replace(key, old, obj)
	}
	return Change[T]{Key: key, Old: old, New: obj}
}

// delete removes what is under key; the last state as the server saw it is not needed.
func (tx *transaction[T]) delete(key string, _ T) Change[T] {
	old, held := tx.objects.Delete(key)
	if !held {
		return Change[T]{Key: key}
	}
	var none T
	for _, index := range tx.indexes {
		index.replace(key, old, none)
	}
	return Change[T]{Key: key, Old: old}
}

func (tx *transaction[T]) commit() *version[T] {
	v := &version[T]{objects: tx.objects.Map(), schema: tx.schema, resourceVersion: tx.resourceVersion}
	v.indexes = make([]any, len(tx.indexes))
	for i, index := range tx.indexes {
		v.indexes[i] = index.commit()
	}
	return v
}

// sameVersion reports whether two objects are the same state of the same object, by the API's own rule: equal UID
// and equal, known resource version.
func sameVersion[T Object](a, b T) bool {
	return a == b || a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion() &&
		a.GetUID() != "" && a.GetUID() == b.GetUID()
}

// newest keeps a resource version from going back (invariant 1). Versions that cannot be compared (KEP-5504) are
// taken as they come.
func newest(held, came string) string {
	if came == "" {
		return held
	}
	if order, err := resourceversion.CompareResourceVersion(held, came); err == nil && order > 0 {
		return held
	}
	return came
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

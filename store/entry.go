package store

import (
	"iter"

	"k8s.io/apimachinery/pkg/types"
)

// Entry is one state of an object as a store keeps it: the object itself, or what the store's
// [Form] has made of it. Two entries are one state only if they are the same pointer.
type Entry interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
}

// Form is how a store keeps its objects: packed, or by their metadata alone, for example. Without
// one, an entry is the object. Open and Read must be safe for concurrent use; writes call Arrive
// one at a time.
//
// A form may have more methods, which the store finds by type assertion:
//
//   - Get(Entry) T, in place of Open for [Indexer.Get], if it keeps objects open that are read one
//     by one.
//   - Holds(Entry, []byte) bool, if it is a form of bytes: whether the entry was made of just
//     these. Then the store has [Indexer.Encoded].
//   - List(items iter.Seq2[Entry, error], held int) iter.Seq2[Entry, error] and Listed(held int),
//     if it looks at lists. List gets the items of a list, whose store holds so many entries, and
//     yields them all. Listed is called with the number of entries after the list.
type Form[T Object] interface {
	// Arrive makes the entry of an object that comes under key: of a T, or of an [*Encoded]. An
	// entry stays as it is. held is the entry under the key, or nil; Arrive returns it if that is
	// the same state. The entry may keep key, which the store keeps. The indexes read the object by
	// from, until the write ends; nil lets them read the entry.
	Arrive(key string, item, held Entry) (entry Entry, from Reading, err error)
	// Open makes the object of an entry, and of an [*Encoded] that has come.
	Open(entry Entry) T
	// Read reads the object of an entry.
	Read(entry Entry) Reading
}

// Reading is an object as indexes and selections read it. The caller owns what it returns, except
// the object.
type Reading interface {
	Labels() map[string]string
	// Field returns the text of a field that T has, such as spec.nodeName; see [ByField].
	Field(path string) string
	// Object is the whole object, a T.
	Object() Object
	// Done ends the use of the reading of an object that has come.
	Done()
}

// hot, bytesForm and lister are further methods of a [Form].
type (
	hot[T Object] interface {
		Get(entry Entry) T
	}
	bytesForm interface {
		Holds(entry Entry, data []byte) bool
	}
	lister interface {
		List(items iter.Seq2[Entry, error], held int) iter.Seq2[Entry, error]
		Listed(held int)
	}
)

// kept is the form of a store's entries, without its type; nil if entries are objects.
type kept struct {
	arrive func(key string, item, held Entry) (Entry, Reading, error)
	read   func(entry Entry) Reading
	open   any // func(Entry) T
	get    any // likewise, for an object that is read alone
	closed any // func(Entry) *Encoded; nil if the form is none of bytes
	lister lister
}

func keptIn[T Object](form Form[T]) *kept {
	k := &kept{arrive: form.Arrive, read: form.Read, open: form.Open, get: form.Open}
	if hot, ok := form.(hot[T]); ok {
		k.get = hot.Get
	}
	if bytes, ok := form.(bytesForm); ok {
		k.closed = func(entry Entry) *Encoded { return closed(entry, keeper[T]{bytes, form}) }
	}
	k.lister, _ = form.(lister)
	return k
}

// opener returns the function that makes a T of an entry of a form.
func opener[T Entry](k *kept) func(Entry) T {
	if open, ok := k.open.(func(Entry) T); ok {
		return open
	}
	if closed, ok := k.closed.(func(Entry) *Encoded); ok {
		if open, ok := any(closed).(func(Entry) T); ok {
			return open
		}
	}
	return as[T]
}

func as[T Entry](entry Entry) T { return entry.(T) }

// opened is the T of an entry.
func opened[T Entry](k *kept, entry Entry) T {
	if k == nil {
		return entry.(T)
	}
	return opener[T](k)(entry)
}

// orNone is opened, and the zero T for no entry.
func orNone[T Entry](k *kept, entry Entry) (obj T) {
	if entry == nil {
		return obj
	}
	return opened[T](k, entry)
}

// reading is an entry as the indexes read it, once for all of them.
type reading struct {
	kept  *kept
	entry Entry
	from  Reading // nil of an entry that nobody has read
}

func (r *reading) read() Reading {
	if r.from == nil {
		r.from = r.kept.read(r.entry)
	}
	return r.from
}

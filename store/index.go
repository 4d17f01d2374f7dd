package store

import (
	"fmt"
	"iter"

	"github.com/tributary-go/tributary/internal/trie"
)

// Index finds objects by a value computed from them, of any comparable type K. It is a declaration,
// without state: pass it to [NewIndexer], then query it on that indexer's snapshots. One Index may
// serve many indexers.
type Index[T Object, K comparable] struct {
	name   string
	values func(T) []K
	hash   func(K) uint64
	part   attribute
}

// attribute is the part of an object that an index is of, as [ByNamespace], [ByLabel] and [ByField]
// declare it: [Snapshot.Select] finds the index by it, and of a store with a [Form] nothing else is
// read.
type attribute struct {
	namespace bool
	label     string
	field     string // a path
}

// members are the objects under one value: a set, placed by the hash of their keys and compared by
// pointer. Members of all types are one type, so that their code is compiled once.
type members = trie.Map[Entry, struct{}]

// indexed is the content of one index in a snapshot.
type indexed[K comparable] = trie.Map[K, members]

// NewIndex declares an index. values returns the values under which an object is found: none, one
// or more; a value returned twice counts once. It must be a pure function of the object. The writer
// of the store calls it before the write takes effect. NewIndex panics if values is nil.
func NewIndex[T Object, K comparable](name string, values func(obj T) []K) *Index[T, K] {
	if values == nil {
		panic(fmt.Sprintf("store: NewIndex: the function of index %q is nil", name))
	}
	return &Index[T, K]{name: name, values: values, hash: hasher[K]()}
}

func hasher[K comparable]() func(K) uint64 {
	if hash, ok := any(trie.HashString).(func(K) uint64); ok {
		return hash
	}
	return trie.Hash[K]
}

// Name is the name given to [NewIndex]; it appears in messages.
func (x *Index[T, K]) Name() string { return x.name }

// Objects yields the objects under value, in no particular order. It panics if the snapshot's store
// did not have this index yet.
func (x *Index[T, K]) Objects(s Snapshot[T], value K) iter.Seq[T] {
	found, _ := x.in(s).Get(x.hash(value), value)
	if kept := s.kept(); kept != nil {
		open := opener[T](kept)
		return func(yield func(T) bool) {
			found.Keys()(func(entry Entry) bool { return yield(open(entry)) })
		}
	}
	return func(yield func(T) bool) {
		found.Keys()(func(entry Entry) bool { return yield(entry.(T)) })
	}
}

// Len is the number of objects under value; it is O(1). It panics as [Index.Objects] does.
func (x *Index[T, K]) Len(s Snapshot[T], value K) int {
	found, _ := x.in(s).Get(x.hash(value), value)
	return found.Len()
}

// Values yields each value under which there is an object, with the number of objects, in no
// particular order. It panics as [Index.Objects] does.
func (x *Index[T, K]) Values(s Snapshot[T]) iter.Seq2[K, int] {
	return func(yield func(K, int) bool) {
		for value, found := range x.in(s).All() {
			if !yield(value, found.Len()) {
				return
			}
		}
	}
}

func (x *Index[T, K]) in(s Snapshot[T]) indexed[K] {
	if s.at == nil {
		return indexed[K]{}
	}
	for i, declared := range s.at.schema {
		if declared == anyIndex(x) {
			return s.at.indexes[i].(indexed[K])
		}
	}
	panic(fmt.Sprintf("store: index %q is not one of this store's: pass it to NewIndexer or AddIndexes", x.name))
}

// AnyIndex is an [*Index] of T by values of any type; nothing else implements it.
type AnyIndex[T Object] interface {
	anyIndex
	of(T)
}

// anyIndex is an [*Index] of any type.
type anyIndex interface {
	Name() string
	writer() indexWriter
	attribute() attribute
}

func (x *Index[T, K]) of(T)                 {}
func (x *Index[T, K]) attribute() attribute { return x.part }

func (x *Index[T, K]) writer() indexWriter { return &indexWriterOf[K]{values: x.read, hash: x.hash} }

// read returns the values of an entry.
func (x *Index[T, K]) read(r *reading) []K {
	switch {
	case r.kept == nil:
		return x.values(r.entry.(T))
	case x.part.namespace:
		return any([]string{r.entry.GetNamespace()}).([]K)
	case x.part != attribute{}:
		return any(x.part.read(r.read())).([]K)
	}
	return x.values(r.read().Object().(T))
}

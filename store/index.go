package store

import (
	"fmt"
	"iter"

	"github.com/tributary-go/tributary/internal/trie"
)

// Index finds objects by a value computed from them, of any comparable type K. It is a declaration, without
// state: pass it to [NewIndexer], then query it on that indexer's snapshots. One Index may serve many indexers.
type Index[T Object, K comparable] struct {
	name   string
	values func(T) []K
}

// NewIndex declares an index. values returns under which values an object is found: none, one or more; a value
// returned twice counts once. It must be a pure function of the object, and is called by the writer of the store.
func NewIndex[T Object, K comparable](name string, values func(obj T) []K) *Index[T, K] {
	return &Index[T, K]{name: name, values: values}
}

// Name is what the index was declared as; it appears in messages.
func (x *Index[T, K]) Name() string { return x.name }

// Objects yields the objects under value, in no particular order. It panics when the snapshot's store was made
// without this index.
func (x *Index[T, K]) Objects(s Snapshot[T], value K) iter.Seq[T] {
	found, _ := x.in(s).Get(value)
	return func(yield func(T) bool) {
		for _, obj := range found.All() {
			if !yield(obj) {
				return
			}
		}
	}
}

// Len is the number of objects under value; it is O(1). It panics as [Index.Objects] does.
func (x *Index[T, K]) Len(s Snapshot[T], value K) int {
	found, _ := x.in(s).Get(value)
	return found.Len()
}

// Values yields each value under which there is an object, with the number of objects, in no particular order. It
// panics as [Index.Objects] does.
func (x *Index[T, K]) Values(s Snapshot[T]) iter.Seq2[K, int] {
	return func(yield func(K, int) bool) {
		for value, found := range x.in(s).All() {
			if !yield(value, found.Len()) {
				return
			}
		}
	}
}

// indexed is what a snapshot holds for one index: for each value the objects under it, by key.
type indexed[T Object, K comparable] = trie.Map[K, trie.Map[string, T]]

func (x *Index[T, K]) in(s Snapshot[T]) indexed[T, K] {
	if s.at == nil {
		return indexed[T, K]{}
	}
	for i, declared := range s.at.schema {
		if declared == AnyIndex[T](x) {
			return s.at.indexes[i].(indexed[T, K])
		}
	}
	panic(fmt.Sprintf("store: index %q is not one of this store's: pass it to NewIndexer", x.name))
}

// AnyIndex is an [*Index] of T by values of any type; nothing else implements it.
type AnyIndex[T Object] interface {
	Name() string
	empty() any
	edit(from any) indexEdit[T]
}

// indexEdit is a transaction on one index.
type indexEdit[T Object] interface {
	// replace moves key from where old was found to where obj is; the zero T stands for absent.
	replace(key string, old, obj T)
	commit() any
}

func (x *Index[T, K]) empty() any { return indexed[T, K]{} }

func (x *Index[T, K]) edit(from any) indexEdit[T] {
	return &valuesEdit[T, K]{values: x.values, index: from.(indexed[T, K]).Edit()}
}

type valuesEdit[T Object, K comparable] struct {
	values func(T) []K
	index  *trie.Edit[K, trie.Map[string, T]]
	// open are the values touched so far: a bucket is written into many times by one transaction and frozen once.
	open map[K]*trie.Edit[string, T]
}

func (e *valuesEdit[T, K]) replace(key string, old, obj T) {
	var none T
	if old != none {
		for _, v := range e.values(old) {
			e.bucket(v).Delete(key)
		}
	}
	if obj != none {
		for _, v := range e.values(obj) {
			e.bucket(v).Set(key, obj)
		}
	}
}

func (e *valuesEdit[T, K]) bucket(value K) *trie.Edit[string, T] {
	b := e.open[value]
	if b == nil {
		found, _ := e.index.Get(value)
		b = found.Edit()
		if e.open == nil {
			e.open = map[K]*trie.Edit[string, T]{}
		}
		e.open[value] = b
	}
	return b
}

func (e *valuesEdit[T, K]) commit() any {
	for value, b := range e.open {
		if b.Len() == 0 {
			e.index.Delete(value)
		} else {
			e.index.Set(value, b.Map())
		}
	}
	clear(e.open)
	return e.index.Map()
}

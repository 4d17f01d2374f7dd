package store

import (
	"fmt"
	"iter"
	"slices"

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
	// open are the values touched so far: a bucket is written into many times by one transaction and frozen once. A
	// single write touches one or two, for which a map would cost more than the writing; place finds them when they
	// are many.
	open  []openBucket[T, K]
	place map[K]int
}

type openBucket[T Object, K comparable] struct {
	value K
	edit  *trie.Edit[string, T]
}

// fewBuckets is how many open buckets are looked through one by one.
const fewBuckets = 8

func (e *valuesEdit[T, K]) replace(key string, old, obj T) {
	var none T
	var before, after []K
	if old != none {
		before = e.values(old)
	}
	if obj != none {
		after = e.values(obj)
	}
	for _, v := range before {
		if !slices.Contains(after, v) {
			e.bucket(v).Delete(key)
		}
	}
	for _, v := range after { // over what is there under an old value that stays
		e.bucket(v).Set(key, obj)
	}
}

func (e *valuesEdit[T, K]) bucket(value K) *trie.Edit[string, T] {
	if e.place != nil {
		if i, ok := e.place[value]; ok {
			return e.open[i].edit
		}
	} else {
		for i := range e.open {
			if e.open[i].value == value {
				return e.open[i].edit
			}
		}
	}
	found, _ := e.index.Get(value)
	e.open = append(e.open, openBucket[T, K]{value, found.Edit()})
	switch last := len(e.open) - 1; {
	case e.place != nil:
		e.place[value] = last
	case len(e.open) > fewBuckets:
		e.place = make(map[K]int, 2*fewBuckets)
		for i := range e.open {
			e.place[e.open[i].value] = i
		}
	}
	return e.open[len(e.open)-1].edit
}

func (e *valuesEdit[T, K]) commit() any {
	for _, b := range e.open {
		if b.edit.Len() == 0 {
			e.index.Delete(b.value)
		} else {
			e.index.Set(b.value, b.edit.Map())
		}
	}
	e.open, e.place = nil, nil
	return e.index.Map()
}

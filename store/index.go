package store

import (
	"fmt"
	"iter"
	"slices"

	"github.com/tributary-go/tributary/internal/trie"
)

// Index finds objects by a value computed from them, of any comparable type K. It is a declaration,
// without state: pass it to [NewIndexer], then query it on that indexer's snapshots. One Index may
// serve many indexers.
type Index[T Object, K comparable] struct {
	name    string
	values  func(T) []K
	buckets trie.Writer[K, members[T]]
	members trie.Writer[T, struct{}]
}

// members are the objects under one value: a set, placed by the hash of their keys and compared by
// pointer.
type members[T Object] = trie.Map[T, struct{}]

// indexed is what a snapshot holds for one index.
type indexed[T Object, K comparable] = trie.Map[K, members[T]]

// NewIndex declares an index. values returns under which values an object is found: none, one or
// more; a value returned twice counts once. It must be a pure function of the object, and is called
// by the writer of the store. NewIndex panics if values is nil.
func NewIndex[T Object, K comparable](name string, values func(obj T) []K) *Index[T, K] {
	if values == nil {
		panic(fmt.Sprintf("store: NewIndex: the function of index %q is nil", name))
	}
	return &Index[T, K]{
		name: name, values: values,
		buckets: trie.Writer[K, members[T]]{Hash: trie.Hash[K]},
		members: trie.Writer[T, struct{}]{Hash: func(obj T) uint64 { return trie.HashString(KeyOf(obj)) }},
	}
}

// Name is what the index was declared as; it appears in messages.
func (x *Index[T, K]) Name() string { return x.name }

// Objects yields the objects under value, in no particular order. It panics when the snapshot's
// store was made without this index.
func (x *Index[T, K]) Objects(s Snapshot[T], value K) iter.Seq[T] {
	found, _ := x.in(s).Get(trie.Hash(value), value)
	return found.Keys()
}

// Len is the number of objects under value; it is O(1). It panics as [Index.Objects] does.
func (x *Index[T, K]) Len(s Snapshot[T], value K) int {
	found, _ := x.in(s).Get(trie.Hash(value), value)
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
	// built is the index of objects.
	built(objects trie.Map[string, T]) any
	// replaced is the index in from with the object whose key has the given hash moved from where
	// old was found to where obj is; the zero T stands for absent. owner is that of a
	// [trie.Writer].
	replaced(from any, owner, hash uint64, old, obj T) any
}

func (x *Index[T, K]) empty() any { return indexed[T, K]{} }

func (x *Index[T, K]) built(objects trie.Map[string, T]) any {
	type bucket struct {
		value   K
		members []trie.Entry[T, struct{}]
		hashes  []uint64
	}
	var buckets []bucket
	place := map[K]int{}
	for key, obj := range objects.All() {
		hash, values := trie.HashString(key), x.values(obj)
		for i, v := range values {
			if slices.Contains(values[:i], v) {
				continue
			}
			at, ok := place[v]
			if !ok {
				at = len(buckets)
				place[v], buckets = at, append(buckets, bucket{value: v})
			}
			b := &buckets[at]
			b.members, b.hashes = append(b.members, trie.Entry[T, struct{}]{Key: obj}), append(b.hashes, hash)
		}
	}
	entries, hashes := make([]trie.Entry[K, members[T]], len(buckets)), make([]uint64, len(buckets))
	for i, b := range buckets {
		entries[i] = trie.Entry[K, members[T]]{Key: b.value, Value: x.members.Build(b.members, b.hashes)}
		hashes[i] = trie.Hash(b.value)
	}
	return x.buckets.Build(entries, hashes)
}

func (x *Index[T, K]) replaced(from any, owner, hash uint64, old, obj T) any {
	var none T
	var before, after []K
	if old != none {
		before = x.values(old)
	}
	if obj != none {
		after = x.values(obj)
	}
	index := from.(indexed[T, K])
	for i, v := range before {
		if !slices.Contains(after, v) && !slices.Contains(before[:i], v) {
			index = x.moved(index, v, owner, hash, old, none)
		}
	}
	for i, v := range after {
		switch {
		case slices.Contains(after[:i], v):
		case slices.Contains(before, v):
			index = x.moved(index, v, owner, hash, old, obj)
		default:
			index = x.moved(index, v, owner, hash, none, obj)
		}
	}
	return index
}

// moved is index with obj in place of old under one value.
func (x *Index[T, K]) moved(index indexed[T, K], value K, owner, hash uint64, old, obj T) indexed[T, K] {
	var none T
	writeMembers, writeBuckets := x.members, x.buckets
	writeMembers.Owner, writeBuckets.Owner = owner, owner
	valueHash := trie.Hash(value)
	was, _ := index.Get(valueHash, value)
	now := was
	switch {
	case obj == none:
		now, _, _ = writeMembers.Delete(was, hash, old)
	case old == none:
		now = writeMembers.Swap(was, hash, obj, obj)
	default:
		now = writeMembers.Swap(was, hash, old, obj)
	}
	switch {
	case now.Len() == 0:
		index, _, _ = writeBuckets.Delete(index, valueHash, value)
	case now != was:
		index, _, _ = writeBuckets.Set(index, valueHash, value, now)
	}
	return index
}

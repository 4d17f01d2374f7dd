package store

import (
	"fmt"
	"iter"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/internal/trie"
)

// NewKeyIndex declares an index by one value, which holds the keys of objects and not the objects.
// It is for collections that are written more often than they are read by the index. A write that
// leaves an object its value costs the index two calls of value, and each object that is read by
// the index costs a look-up. The rules for value are those of [NewIndex]; it panics if value is
// nil.
func NewKeyIndex[T Object, K comparable](name string, value func(obj T) K) *Index[T, K] {
	if value == nil {
		panic(fmt.Sprintf("store: NewKeyIndex: the function of index %q is nil", name))
	}
	return &Index[T, K]{name: name, value: value, hash: hasher[K]()}
}

// keys are those of the objects under one value.
type keys = trie.Map[string, struct{}]

// keysIn is what a snapshot holds for an index of keys.
func (x *Index[T, K]) keysIn(s Snapshot[T]) trie.Map[K, keys] {
	if s.at == nil {
		return trie.Map[K, keys]{}
	}
	return x.content(s).(trie.Map[K, keys])
}

func (x *Index[T, K]) objectsByKey(s Snapshot[T], value K) iter.Seq[T] {
	found, _ := x.keysIn(s).Get(x.hash(value), value)
	return func(yield func(T) bool) {
		found.Keys()(func(key string) bool {
			obj, _ := s.Get(key)
			return yield(obj)
		})
	}
}

// keyWriter is the writer's version of an index of keys.
type keyWriter[T Object, K comparable] struct {
	index *Index[T, K]
	now   trie.Map[K, keys]

	planned struct {
		key            string
		hash           uint64
		leaves, enters bool // whether the key leaves from, and whether it enters to
		from, to       valueHash[K]
	}
}

func (w *keyWriter[T, K]) fork() indexWriter[T] {
	return &keyWriter[T, K]{index: w.index, now: w.now}
}

func (w *keyWriter[T, K]) content() any { return w.now }

func (w *keyWriter[T, K]) groups(owner uint64) trie.Writer[K, keys] {
	return trie.Writer[K, keys]{Hash: w.index.hash, Owner: owner}
}

func (w *keyWriter[T, K]) keys(owner uint64) trie.Writer[string, struct{}] {
	return trie.Writer[string, struct{}]{Hash: trie.HashString, Owner: owner}
}

func (w *keyWriter[T, K]) build(owner uint64, objects []trie.Entry[string, T], hashes []uint64) {
	var groups grouping[K, string]
	for i := range objects {
		groups.add(w.index.value(objects[i].Value), objects[i].Key, hashes[i])
	}
	w.now = groups.build(w.groups(owner), w.keys(owner))
}

func (w *keyWriter[T, K]) plan(key string, hash uint64, old, obj T) {
	p := &w.planned
	p.key, p.hash = key, hash
	p.leaves, p.enters = !pointer.None(old), !pointer.None(obj)
	if p.leaves {
		p.from.value = w.index.value(old)
	}
	if p.enters {
		p.to.value = w.index.value(obj)
	}
	if p.leaves && p.enters && p.from.value == p.to.value {
		p.leaves, p.enters = false, false
	}
	if p.leaves {
		p.from.hash = w.index.hash(p.from.value)
	}
	if p.enters {
		p.to.hash = w.index.hash(p.to.value)
	}
}

func (w *keyWriter[T, K]) write(owner uint64) {
	p := &w.planned
	if p.leaves {
		was, _ := w.now.Get(p.from.hash, p.from.value)
		if left, _, _ := w.keys(owner).Delete(was, p.hash, p.key); left.Len() > 0 {
			w.now, _, _ = w.groups(owner).Set(w.now, p.from.hash, p.from.value, left)
		} else {
			w.now, _, _ = w.groups(owner).Delete(w.now, p.from.hash, p.from.value)
		}
	}
	if p.enters {
		was, _ := w.now.Get(p.to.hash, p.to.value)
		all, _, _ := w.keys(owner).Set(was, p.hash, p.key, struct{}{})
		w.now, _, _ = w.groups(owner).Set(w.now, p.to.hash, p.to.value, all)
	}
	p.key, p.from, p.to = "", valueHash[K]{}, valueHash[K]{} // not the writer's to keep
}

package store

import (
	"slices"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/internal/trie"
)

// indexWriter is the writer's version of one index. A write is planned first, which calls the
// user's function and may panic, and then done.
type indexWriter[T Object] interface {
	// fork is a writer that begins with the same content, for a transaction of its own.
	fork() indexWriter[T]
	// build makes entries the content; their keys have the given hashes, each once.
	build(owner uint64, entries []trie.Entry[string, T], hashes []uint64)
	// plan computes the edit for replacing old by obj, under a key of the given hash. The zero T
	// stands for an absent object.
	plan(hash uint64, old, obj T)
	// write does the planned edit.
	write(owner uint64)
	// content is the trie that a snapshot holds.
	content() any
}

type indexWriterOf[T Object, K comparable] struct {
	index *Index[T, K]
	now   indexed[T, K]
	// several notes that an object has had more than one value. Until then, an object that is found
	// under one value is under no other, so that the old object's values need not be computed.
	several bool

	planned struct {
		hash          uint64
		old, obj      T
		before, after []valueHash[K]
		place         trie.Place[Object, struct{}] // of old, if just the object changes
		one           [2]valueHash[K]              // the space of before and after
	}
}

// valueHash is a value with its hash. Hashing fails for some dynamic types of an interface, and so
// belongs to the plan.
type valueHash[K comparable] struct {
	value K
	hash  uint64
}

func (w *indexWriterOf[T, K]) fork() indexWriter[T] {
	return &indexWriterOf[T, K]{index: w.index, now: w.now, several: w.several}
}

func (w *indexWriterOf[T, K]) content() any { return w.now }

func (w *indexWriterOf[T, K]) buckets(owner uint64) trie.Writer[K, members] {
	return trie.Writer[K, members]{Hash: w.index.hash, Owner: owner}
}

func (w *indexWriterOf[T, K]) members(owner uint64) trie.Writer[Object, struct{}] {
	return trie.Writer[Object, struct{}]{Hash: hashOf, Owner: owner}
}

func hashOf(obj Object) uint64 { return trie.HashString(KeyOf(obj)) }

func (w *indexWriterOf[T, K]) build(owner uint64, objects []trie.Entry[string, T], objectHashes []uint64) {
	type group struct {
		entries []trie.Entry[Object, struct{}]
		hashes  []uint64
	}
	groups := map[K]*group{}
	w.several = false
	for i := range objects {
		values := w.index.values(objects[i].Value)
		w.several = w.several || len(values) > 1
		for j, v := range values {
			if slices.Contains(values[:j], v) {
				continue
			}
			g := groups[v]
			if g == nil {
				g = &group{}
				groups[v] = g
			}
			g.entries = append(g.entries, trie.Entry[Object, struct{}]{Key: objects[i].Value})
			g.hashes = append(g.hashes, objectHashes[i])
		}
	}
	var entries []trie.Entry[K, members]
	var hashes []uint64
	for v, g := range groups {
		entries = append(entries, trie.Entry[K, members]{Key: v, Value: w.members(owner).Build(g.entries, g.hashes)})
		hashes = append(hashes, w.index.hash(v))
	}
	w.now = w.buckets(owner).Build(entries, hashes)
}

func (w *indexWriterOf[T, K]) plan(hash uint64, old, obj T) {
	p := &w.planned
	p.hash, p.old, p.obj, p.place = hash, old, obj, trie.Place[Object, struct{}]{}
	p.before, p.after = p.before[:0], p.after[:0]
	if !pointer.None(obj) {
		p.after = w.hashed(p.one[1:1:2], w.index.values(obj))
	}
	if pointer.None(old) {
		return
	}
	if len(p.after) == 1 && !w.several {
		under, _ := w.now.Get(p.after[0].hash, p.after[0].value)
		if place, ok := under.Place(hash, old); ok {
			p.place, p.before = place, p.after
			return
		}
	}
	p.before = w.hashed(p.one[0:0:1], w.index.values(old))
}

// hashed appends values, each once, to into.
func (w *indexWriterOf[T, K]) hashed(into []valueHash[K], values []K) []valueHash[K] {
	w.several = w.several || len(values) > 1
	for i, v := range values {
		if !slices.Contains(values[:i], v) {
			into = append(into, valueHash[K]{v, w.index.hash(v)})
		}
	}
	return into
}

func (w *indexWriterOf[T, K]) write(owner uint64) {
	var none T
	p := &w.planned
	switch {
	case p.place.Owned(owner):
		p.place.Key = p.obj
	default:
		for _, v := range p.before {
			if !slices.Contains(p.after, v) {
				w.move(owner, v, p.old, none)
			}
		}
		for _, v := range p.after {
			if slices.Contains(p.before, v) {
				w.move(owner, v, p.old, p.obj)
			} else {
				w.move(owner, v, none, p.obj)
			}
		}
	}
	p.old, p.obj, p.place = none, none, trie.Place[Object, struct{}]{} // not the writer's to keep
	p.one = [2]valueHash[K]{}
	p.before, p.after = nil, nil
}

// move puts obj in place of old under one value.
func (w *indexWriterOf[T, K]) move(owner uint64, v valueHash[K], old, obj T) {
	hash := w.planned.hash
	was, _ := w.now.Get(v.hash, v.value)
	now := was
	switch {
	case pointer.None(obj):
		now, _, _ = w.members(owner).Delete(was, hash, old)
	case pointer.None(old):
		now = w.members(owner).Swap(was, hash, obj, obj)
	default:
		now = w.members(owner).Swap(was, hash, old, obj)
	}
	switch {
	case now.Len() == 0:
		w.now, _, _ = w.buckets(owner).Delete(w.now, v.hash, v.value)
	case now != was:
		w.now, _, _ = w.buckets(owner).Set(w.now, v.hash, v.value, now)
	}
}

package store

import (
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

	planned edit[T, K]
}

// edit is a planned write of one index.
type edit[T Object, K comparable] struct {
	hash     uint64 // of the object's key
	old, obj T
	// The values to take old from and to put obj under. A value may come twice.
	before, after []valueHash[K]
	place         trie.Place[Object, struct{}] // of old, if just the object changes
	done          *indexed[T, K]               // the content after an edit of many values
	one           [2]valueHash[K]              // the space of before and after
}

// lockedValues is how many values of an object a writer changes under the lock that a new snapshot
// waits for. An edit of more values is made beforehand, in nodes of its own.
const lockedValues = 64

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
		for _, v := range values { // Build takes an object once
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
	p.hash, p.old, p.obj = hash, old, obj
	// Another plan may have panicked.
	p.before, p.after, p.done, p.place = nil, nil, nil, trie.Place[Object, struct{}]{}
	if !pointer.None(obj) {
		p.after = w.hashed(p.one[1:1:2], w.index.values(obj))
	}
	if !pointer.None(old) && !w.stays() {
		p.before = w.hashed(p.one[0:0:1], w.index.values(old))
	}
	if len(p.before)+len(p.after) > lockedValues {
		done := w.edited(trie.NewOwner())
		p.done = &done
	}
}

// stays reports whether the old object is known to be under the new one's only value, and under no
// other.
func (w *indexWriterOf[T, K]) stays() (ok bool) {
	p := &w.planned
	if len(p.after) != 1 || w.several {
		return false
	}
	under, _ := w.now.Get(p.after[0].hash, p.after[0].value)
	p.place, ok = under.Place(p.hash, p.old)
	return ok
}

// hashed appends values to into.
func (w *indexWriterOf[T, K]) hashed(into []valueHash[K], values []K) []valueHash[K] {
	w.several = w.several || len(values) > 1
	if len(values) > cap(into) {
		into = make([]valueHash[K], 0, len(values))
	}
	for _, v := range values {
		into = append(into, valueHash[K]{v, w.index.hash(v)})
	}
	return into
}

func (w *indexWriterOf[T, K]) write(owner uint64) {
	switch p := &w.planned; {
	case p.place.Owned(owner):
		p.place.Key = p.obj
	case p.done != nil:
		w.now = *p.done
	default:
		w.now = w.edited(owner)
	}
	w.planned = edit[T, K]{} // not the writer's to keep
}

// edited is the content after the planned edit. First the object goes under its values, in place of
// the old one where that is. Then the old one is taken from its own values: those of both are done
// already. Each step looks up one value, so that the two lists need not be compared.
func (w *indexWriterOf[T, K]) edited(owner uint64) indexed[T, K] {
	p, now := &w.planned, w.now
	for _, v := range p.after {
		now = w.put(now, owner, v)
	}
	for i, v := range p.before {
		if i >= len(p.after) || p.after[i] != v { // most lists change little, and keep their order
			now = w.take(now, owner, v)
		}
	}
	return now
}

// put is now with the object under a value, once.
func (w *indexWriterOf[T, K]) put(now indexed[T, K], owner uint64, v valueHash[K]) indexed[T, K] {
	p := &w.planned
	was, _ := now.Get(v.hash, v.value)
	replaced := Object(p.obj)
	switch {
	case p.place.Entry != nil:
		replaced = p.old
	case !pointer.None(p.old):
		place, held := was.Place(p.hash, p.old)
		if place.Owned(owner) {
			place.Key = p.obj
			return now
		}
		if held {
			replaced = p.old
		}
	}
	under := w.members(owner).Swap(was, p.hash, replaced, p.obj)
	if under != was {
		now, _, _ = w.buckets(owner).Set(now, v.hash, v.value, under)
	}
	return now
}

// take is now without the old object under a value, if it is still there.
func (w *indexWriterOf[T, K]) take(now indexed[T, K], owner uint64, v valueHash[K]) indexed[T, K] {
	p := &w.planned
	was, _ := now.Get(v.hash, v.value)
	under, _, _ := w.members(owner).Delete(was, p.hash, p.old)
	switch {
	case under == was:
	case under.Len() == 0:
		now, _, _ = w.buckets(owner).Delete(now, v.hash, v.value)
	default:
		now, _, _ = w.buckets(owner).Set(now, v.hash, v.value, under)
	}
	return now
}

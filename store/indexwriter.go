package store

import "github.com/tributary-go/tributary/internal/trie"

// indexWriter is the writer's version of one index. A write is planned first, which calls the
// user's function and may panic, and then done.
type indexWriter interface {
	// fork is a writer that begins with the same content, for a transaction of its own.
	fork() indexWriter
	// gather takes in an entry under a key of the given hash, and build makes what was gathered the
	// content. An entry comes once.
	gather(hash uint64, r *reading)
	build(owner uint64)
	// plan computes the edit for replacing old by now, under a key of the given hash. A reading
	// without an entry stands for an absent object.
	plan(hash uint64, old, now *reading)
	// write does the planned edit.
	write(owner uint64)
	// content is the trie that a snapshot holds.
	content() any
}

type indexWriterOf[K comparable] struct {
	values func(*reading) []K
	hash   func(K) uint64
	now    indexed[K]
	// several notes that an object has had more than one value. Until then, an object that is found
	// under one value is under no other, so that the old object's values need not be computed.
	several bool

	planned  edit[K]
	gathered map[K]*group
}

// edit is a planned write of one index.
type edit[K comparable] struct {
	hash     uint64 // of the object's key
	old, obj Entry
	// The values to take old from and to put obj under. A value may come twice.
	before, after []valueHash[K]
	place         trie.Place[Entry, struct{}] // of old, if just the object changes
	done          *indexed[K]                 // the content after an edit of many values
	one           [2]valueHash[K]             // the space of before and after
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

func (w *indexWriterOf[K]) fork() indexWriter {
	return &indexWriterOf[K]{values: w.values, hash: w.hash, now: w.now, several: w.several}
}

func (w *indexWriterOf[K]) content() any { return w.now }

func (w *indexWriterOf[K]) buckets(owner uint64) trie.Writer[K, members] {
	return trie.Writer[K, members]{Hash: w.hash, Owner: owner}
}

func (w *indexWriterOf[K]) members(owner uint64) trie.Writer[Entry, struct{}] {
	return trie.Writer[Entry, struct{}]{Hash: hashOf, Owner: owner}
}

func hashOf(entry Entry) uint64 { return trie.HashString(KeyOf(entry)) }

// group are the entries that were gathered under one value.
type group struct {
	entries []trie.Entry[Entry, struct{}]
	hashes  []uint64
}

func (w *indexWriterOf[K]) gather(hash uint64, r *reading) {
	if w.gathered == nil {
		w.gathered, w.several = map[K]*group{}, false
	}
	values := w.values(r)
	w.several = w.several || len(values) > 1
	for _, v := range values { // Build takes an entry once
		g := w.gathered[v]
		if g == nil {
			g = &group{}
			w.gathered[v] = g
		}
		g.entries, g.hashes = append(g.entries, trie.Entry[Entry, struct{}]{Key: r.entry}), append(g.hashes, hash)
	}
}

func (w *indexWriterOf[K]) build(owner uint64) {
	var entries []trie.Entry[K, members]
	var hashes []uint64
	for v, g := range w.gathered {
		entries = append(entries, trie.Entry[K, members]{Key: v, Value: w.members(owner).Build(g.entries, g.hashes)})
		hashes = append(hashes, w.hash(v))
	}
	w.now, w.gathered = w.buckets(owner).Build(entries, hashes), nil
}

func (w *indexWriterOf[K]) plan(hash uint64, old, now *reading) {
	p := &w.planned
	p.hash, p.old, p.obj = hash, old.entry, now.entry
	// Another plan may have panicked.
	p.before, p.after, p.done, p.place = nil, nil, nil, trie.Place[Entry, struct{}]{}
	if now.entry != nil {
		p.after = w.hashed(p.one[1:1:2], w.values(now))
	}
	if old.entry != nil && !w.stays() {
		p.before = w.hashed(p.one[0:0:1], w.values(old))
	}
	if len(p.before)+len(p.after) > lockedValues {
		done := w.edited(trie.NewOwner())
		p.done = &done
	}
}

// stays reports whether the old object is known to be under the new one's only value, and under no
// other.
func (w *indexWriterOf[K]) stays() (ok bool) {
	p := &w.planned
	if len(p.after) != 1 || w.several {
		return false
	}
	under, _ := w.now.Get(p.after[0].hash, p.after[0].value)
	p.place, ok = under.Place(p.hash, p.old)
	return ok
}

// hashed appends values to into.
func (w *indexWriterOf[K]) hashed(into []valueHash[K], values []K) []valueHash[K] {
	w.several = w.several || len(values) > 1
	if len(values) > cap(into) {
		into = make([]valueHash[K], 0, len(values))
	}
	for _, v := range values {
		into = append(into, valueHash[K]{v, w.hash(v)})
	}
	return into
}

func (w *indexWriterOf[K]) write(owner uint64) {
	switch p := &w.planned; {
	case p.place.Owned(owner):
		p.place.Key = p.obj
	case p.done != nil:
		w.now = *p.done
	default:
		w.now = w.edited(owner)
	}
	w.planned = edit[K]{} // not the writer's to keep
}

// edited is the content after the planned edit. First the object goes under its values, in place of
// the old one where that is. Then the old one is taken from its own values: those of both are done
// already. Each step looks up one value, so that the two lists need not be compared.
func (w *indexWriterOf[K]) edited(owner uint64) indexed[K] {
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
func (w *indexWriterOf[K]) put(now indexed[K], owner uint64, v valueHash[K]) indexed[K] {
	p := &w.planned
	was, _ := now.Get(v.hash, v.value)
	replaced := p.obj
	switch {
	case p.place.Entry != nil:
		replaced = p.old
	case p.old != nil:
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
func (w *indexWriterOf[K]) take(now indexed[K], owner uint64, v valueHash[K]) indexed[K] {
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

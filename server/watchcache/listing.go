package watchcache

import (
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// listing is a whole state in the order of lists, with the encodings that readers asked for. Lists
// and initial events of one state share it. The listing of a later state takes over the parts that
// have not changed. It is let go a while after the last reader has asked for it.
type listing[T store.Object] struct {
	state   store.Snapshot[T]
	objects []T
	kept    kept
}

// listings hands out the listing of a state.
type listings[T store.Object] struct {
	bytes int64 // the bound of each listing's values

	mu    sync.Mutex // guards the next fields; held while a listing is made
	last  *listing[T]
	letGo *time.Timer // nil until there is a listing
}

// listingLinger is how long a listing stays after a reader has asked for it. Readers that begin at
// the same time share one. A weak pointer would let it go with its last reader, but to read one
// waits while a garbage collection ends, and all lists with it.
const listingLinger = 2 * time.Second

// of is the listing of a state.
func (x *listings[T]) of(state store.Snapshot[T]) *listing[T] {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.linger()
	last := x.last
	if last != nil && last.state == state {
		return last
	}
	next := &listing[T]{state: state}
	next.kept.room.Store(x.bytes)
	if last == nil || !next.follow(last) {
		next.objects = sorted(func(yield func(T) bool) {
			for _, obj := range state.All() {
				if !yield(obj) {
					return
				}
			}
		})
	}
	x.last = next
	return next
}

// linger has the listing let go a while from now. The lock is held.
func (x *listings[T]) linger() {
	if x.letGo != nil {
		x.letGo.Reset(listingLinger)
		return
	}
	x.letGo = time.AfterFunc(listingLinger, x.forget)
}

// forget lets the listing go. Readers under way keep theirs.
func (x *listings[T]) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last = nil
}

// edit is the new state of an object, under its key; the zero T: it is gone.
type edit[T store.Object] struct {
	key objectKey
	now T
}

// part is a range of objects that one order takes over from another.
type part struct{ from, to, into int }

// edited is the order after edits. Of two with one key the later counts.
func (l *listing[T]) edited(edits []edit[T]) (objects []T, same []part) {
	slices.SortStableFunc(edits, func(a, b edit[T]) int {
		return compareKeys(a.key.namespace, a.key.name, b.key.namespace, b.key.name)
	})
	objects = make([]T, 0, len(l.objects)+len(edits))
	begin := 0
	take := func(to int) {
		if begin < to {
			same = append(same, part{begin, to, len(objects)})
			objects = append(objects, l.objects[begin:to]...)
		}
	}
	for i, e := range edits {
		if i+1 < len(edits) && edits[i+1].key == e.key {
			continue
		}
		at := l.search(e.key)
		take(at)
		if begin = at; at < len(l.objects) && keyOf(l.objects[at]) == e.key {
			begin++
		}
		if !pointer.None(e.now) {
			objects = append(objects, e.now)
		}
	}
	take(len(l.objects))
	return objects, same
}

// before is the order of an earlier state; undo has the objects that differ.
func (l *listing[T]) before(undo map[objectKey]T) []T {
	edits := make([]edit[T], 0, len(undo))
	for key, obj := range undo {
		edits = append(edits, edit[T]{key, obj})
	}
	objects, _ := l.edited(edits)
	return objects
}

// follow makes a listing out of the one before. It reports false if so much has changed that
// sorting costs less.
func (l *listing[T]) follow(last *listing[T]) bool {
	var edits []edit[T]
	for d := range store.Diff(last.state, l.state) {
		key := d.New
		if pointer.None(key) {
			key = d.Old
		}
		edits = append(edits, edit[T]{keyOf(key), d.New})
		if len(edits) > 64+len(last.objects)/8 {
			return false
		}
	}
	var same []part
	l.objects, same = last.edited(edits)
	l.kept.follow(&last.kept, same, len(l.objects))
	return true
}

// search is the index at which the object of a key stands, or would stand.
func (l *listing[T]) search(key objectKey) int {
	return sort.Search(len(l.objects), func(i int) bool {
		return compareKeys(l.objects[i].GetNamespace(), l.objects[i].GetName(), key.namespace, key.name) >= 0
	})
}

// Encodings are objects in the bytes of one format. Readers of one state share them, within
// [WithListBytes].
type Encodings[T store.Object] struct {
	objects []T
	items   []place     // nil if they are not shared, as whole is
	whole   *listing[T] // in which they begin at from
	from    int
	kind    any
	encode  func(T) ([]byte, error)
}

// encodings are those of a part of a listing.
func (l *listing[T]) encodings(from, to int, kind any, encode func(T) ([]byte, error)) Encodings[T] {
	return Encodings[T]{objects: l.objects[from:to], items: l.kept.of(kind, len(l.objects))[from:to], whole: l, from: from, kind: kind, encode: encode}
}

// Bytes is the encoding of one object, which is read-only. Beyond the bound it is made each time.
func (e Encodings[T]) Bytes(i int) ([]byte, error) {
	bytes, _, err := e.encoded(i)
	return bytes, err
}

// Shared is the encoding of one object that is kept, made if it is missing, so that lists that
// begin at the same time share it. It is read-only, and nil beyond the bound: a reader then makes
// its own, into memory that it uses again.
func (e Encodings[T]) Shared(i int) ([]byte, error) {
	if e.items == nil || e.whole.kept.room.Load() <= 0 && e.items[i].Load() == nil {
		return nil, nil
	}
	bytes, kept, err := e.encoded(i)
	if !kept {
		return nil, err
	}
	return bytes, nil
}

// encoded is the encoding of one object, made if it is missing and kept if there is room.
func (e Encodings[T]) encoded(i int) (bytes []byte, kept bool, err error) {
	if e.items == nil {
		bytes, err = e.encode(e.objects[i])
		return bytes, false, err
	}
	if known := e.items[i].Load(); known != nil {
		return known.value.([]byte), true, nil
	}
	bytes, err = e.encode(e.objects[i])
	if err != nil {
		return nil, false, err
	}
	return bytes, e.whole.kept.keep(&e.items[i], nil, &made{bytes, int64(cap(bytes)), 1}), nil
}

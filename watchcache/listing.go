package watchcache

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// listing is a whole state in the order of lists, with the encodings that somebody asked for. Lists
// and initial events of one state share it, and one of a later state takes over what has not
// changed. Nothing but its readers holds it, so that it goes with the collection of garbage after
// the last of them.
type listing[T store.Object] struct {
	state   store.Snapshot[T]
	objects []T
	room    atomic.Int64 // how many bytes of encodings may still be kept

	mu    sync.RWMutex // guards what follows, but for the elements
	kinds map[any][]encodedItem
}

// encodedItem is the encoding of the object at the same index; nil while it is not kept.
type encodedItem = atomic.Pointer[[]byte]

// listings hands out the listing of a state.
type listings[T store.Object] struct {
	bytes int64 // the bound of encodings

	mu   sync.Mutex // guards what follows; held while a listing is made
	last weak.Pointer[listing[T]]
}

// of is the listing of a state.
func (x *listings[T]) of(state store.Snapshot[T]) *listing[T] {
	x.mu.Lock()
	defer x.mu.Unlock()
	last := x.last.Value()
	if last != nil && last.state == state {
		return last
	}
	next := &listing[T]{state: state, kinds: map[any][]encodedItem{}}
	next.room.Store(x.bytes)
	if last == nil || !next.follow(last) {
		next.objects = sorted(func(yield func(T) bool) {
			for _, obj := range state.All() {
				if !yield(obj) {
					return
				}
			}
		})
	}
	x.last = weak.Make(next)
	return next
}

// follow makes a listing out of the one before. It reports false if so much has changed that
// sorting costs less.
func (l *listing[T]) follow(last *listing[T]) bool {
	type change struct {
		of, now T
		old     bool
	}
	var changes []change
	for d := range store.Diff(last.state, l.state) {
		c := change{of: d.New, now: d.New, old: !pointer.None(d.Old)}
		if pointer.None(d.New) {
			c.of = d.Old
		}
		changes = append(changes, c)
		if len(changes) > 64+len(last.objects)/8 {
			return false
		}
	}
	// Stable: of an object that was created again, the deletion comes first.
	slices.SortStableFunc(changes, func(a, b change) int { return compareObjects(a.of, b.of) })
	type run struct{ from, to, into int } // of what is taken over
	var runs []run
	l.objects = make([]T, 0, len(last.objects)+len(changes))
	begin := 0
	take := func(to int) {
		if begin < to {
			runs = append(runs, run{begin, to, len(l.objects)})
			l.objects = append(l.objects, last.objects[begin:to]...)
		}
	}
	for _, c := range changes {
		at := last.search(c.of)
		take(at)
		begin = max(begin, at)
		if c.old {
			begin = at + 1
		}
		if !pointer.None(c.now) {
			l.objects = append(l.objects, c.now)
		}
	}
	take(len(last.objects))
	last.mu.RLock()
	defer last.mu.RUnlock()
	for kind, before := range last.kinds {
		items := make([]encodedItem, len(l.objects))
		for _, r := range runs {
			for i := r.from; i < r.to; i++ {
				if bytes := before[i].Load(); bytes != nil {
					items[r.into+i-r.from].Store(bytes)
					l.room.Add(-int64(cap(*bytes)))
				}
			}
		}
		l.kinds[kind] = items
	}
	return true
}

// search is the index at which an object of this name stands, or would stand.
func (l *listing[T]) search(obj T) int {
	return sort.Search(len(l.objects), func(i int) bool { return compareObjects(l.objects[i], obj) >= 0 })
}

// items are the encodings of one kind.
func (l *listing[T]) items(kind any) []encodedItem {
	l.mu.RLock()
	items := l.kinds[kind]
	l.mu.RUnlock()
	if items != nil {
		return items
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kinds[kind] == nil {
		l.kinds[kind] = make([]encodedItem, len(l.objects))
	}
	return l.kinds[kind]
}

// Encodings are objects in the bytes of one format. Readers of one state share them, within
// [WithListBytes].
type Encodings[T store.Object] struct {
	objects []T
	items   []encodedItem // nil if they are not shared
	room    *atomic.Int64
	encode  func(T) ([]byte, error)
}

// encodings are those of a part of a listing.
func (l *listing[T]) encodings(from, to int, kind any, encode func(T) ([]byte, error)) Encodings[T] {
	return Encodings[T]{objects: l.objects[from:to], items: l.items(kind)[from:to], room: &l.room, encode: encode}
}

// Bytes is the encoding of one object, which is read-only. Beyond the bound it is made each time.
func (e Encodings[T]) Bytes(i int) ([]byte, error) {
	bytes, _, err := e.encoded(i)
	return bytes, err
}

// Len is the length of an encoding that is kept; false beyond the bound. It makes a missing
// encoding, so that lists that begin at the same time share it, and none has to measure the object.
func (e Encodings[T]) Len(i int) (length int, ok bool) {
	if e.items == nil || e.room.Load() <= 0 && e.items[i].Load() == nil {
		return 0, false
	}
	bytes, kept, err := e.encoded(i)
	return len(bytes), kept && err == nil
}

// encoded is the encoding of one object, made if it is missing and kept if there is room.
func (e Encodings[T]) encoded(i int) (bytes []byte, kept bool, err error) {
	if e.items == nil {
		bytes, err = e.encode(e.objects[i])
		return bytes, false, err
	}
	if known := e.items[i].Load(); known != nil {
		return *known, true, nil
	}
	bytes, err = e.encode(e.objects[i])
	if err != nil {
		return nil, false, err
	}
	if e.room.Load() < int64(cap(bytes)) {
		e.room.Store(0) // full: Len would make the other encodings in vain
		return bytes, false, nil
	}
	if e.items[i].CompareAndSwap(nil, &bytes) {
		e.room.Add(-int64(cap(bytes)))
	}
	return bytes, true, nil
}

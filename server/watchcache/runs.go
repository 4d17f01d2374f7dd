package watchcache

import (
	"hash/maphash"

	"github.com/tributary-go/tributary/store"
)

// A run is a part of a list from which readers make one value, such as its compressed bytes, that
// they share. One object in runLength begins a run, by its name alone. So the runs of two states,
// and of two pages, are the same as far as their objects are.
const runLength = 32

var runSeed = maphash.MakeSeed()

func beginsRun[T store.Object](obj T) bool {
	return maphash.String(runSeed, obj.GetName())%runLength == 0
}

// runKind is the kind of the values made of runs, of the encodings of a kind.
type runKind struct{ kind, form any }

// Run returns the end of the run that begins with an object, if one does and if all of it is in the
// page.
func (e Encodings[T]) Run(i int) (end int, ok bool) {
	if e.items == nil || !beginsRun(e.objects[i]) {
		return 0, false
	}
	for end = i + 1; end < len(e.objects); end++ {
		if beginsRun(e.objects[end]) {
			return end, true
		}
	}
	return end, e.from+end == len(e.whole.objects)
}

// OfRun returns the value of a run, such as its compressed bytes; i is its first object. make makes
// the value once for each form, any comparable value, and tells the bytes that it takes. Readers of
// one state share the value as they share encodings, and it is read-only.
func (e Encodings[T]) OfRun(i, end int, form any, make func() (value any, bytes int64, err error)) (any, error) {
	kept := &e.whole.kept
	at := &kept.of(runKind{e.kind, form}, len(e.whole.objects))[e.from+i]
	// A new object behind the last of a run belongs to the run: the number of its objects changes.
	if known := at.Load(); known != nil && known.objects == end-i {
		return known.value, nil
	}
	if kept.room.Load() > 0 { // of lists that begin at once, one makes it, and the others wait
		kept.making.Lock()
		defer kept.making.Unlock()
	}
	known := at.Load()
	if known != nil && known.objects == end-i {
		return known.value, nil
	}
	value, bytes, err := make()
	if err == nil {
		kept.keep(at, known, &made{value, bytes, end - i})
	}
	return value, err
}

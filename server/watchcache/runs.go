package watchcache

import (
	"hash/maphash"

	"github.com/tributary-go/tributary/store"
)

// A run is a part of a list whose readers share what they make of it as a whole. One object in
// runLength begins one, by its name alone: so the runs of two states, and of two pages, are the
// same where their objects are.
const runLength = 32

var runSeed = maphash.MakeSeed()

func beginsRun[T store.Object](obj T) bool {
	return maphash.String(runSeed, obj.GetName())%runLength == 0
}

// runKind is what was made of runs, of the encodings of a kind.
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

// OfRun returns what make makes of the encodings from i to the end of their run, in a form: any
// comparable value. Readers of one state share it as they share encodings, and it is read-only.
// bytes is what it takes.
func (e Encodings[T]) OfRun(i, end int, form any, make func() (value any, bytes int64, err error)) (any, error) {
	kept := &e.whole.kept
	at := &kept.of(runKind{e.kind, form}, len(e.whole.objects))[e.from+i]
	// An object that is new behind the last of a run belongs to it: then their number is another.
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

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

// made is what was made of a run of a length, at the index of its first object.
type made struct {
	value  any
	bytes  int64
	length int
}

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
	at, room := &e.whole.runs.of(runKind{e.kind, form}, len(e.whole.objects))[e.from+i], &e.whole.room
	// An object that is new behind the last of a run belongs to it: then the length is another.
	if known := at.Load(); known != nil && known.length == end-i {
		return known.value, nil
	}
	if room.Load() > 0 { // of lists that begin at once, one makes it, and the others wait
		e.whole.making.Lock()
		defer e.whole.making.Unlock()
	}
	known, before := at.Load(), int64(0)
	if known != nil {
		if known.length == end-i {
			return known.value, nil
		}
		before = known.bytes
	}
	value, bytes, err := make()
	if err == nil {
		keep(at, known, &made{value, bytes, end - i}, room, bytes-before)
	}
	return value, err
}

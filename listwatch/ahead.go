package listwatch

import (
	"bufio"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

// What has come of a watch already need not be decoded one by one: where complete objects wait in the reader's buffer, a round of them is
// decoded by several goroutines at once, and handed on in order by the one that ranges, which also reads. What comes
// alone is decoded by that one and waits for nobody. The goroutines of a round have ended before its first object is handed
// on, so that there is none to stop, and nothing is handed on that stands behind an error. A list is decoded by one: two made it
// no faster (docs/design.md).

const (
	maxRound   = 256 << 10 // bytes that are read ahead, and with them the objects of a round
	maxDecode  = 4         // goroutines of a round
	neighbours = 4         // objects that one of them takes at a time: neighbours share most
)

// round is what has come and was not handed on yet.
type round[In, Out any] struct {
	decode func(In) (Out, error)
	known  func(In) (Out, bool)   // what need not be decoded
	yield  func(Out, error) error // hands one on; its error ends the stream
	waits  []undecoded[In, Out]
}

type undecoded[In, Out any] struct {
	in  In
	out Out
	err error
}

// take adds the next object. With more to come that need not be waited for, it may stay for now; in must stay valid until
// take is called without more.
func (r *round[In, Out]) take(in In, more bool) error {
	if out, ok := r.known(in); ok {
		if err := r.end(); err != nil {
			return err
		}
		return r.yield(out, nil)
	}
	r.waits = append(r.waits, undecoded[In, Out]{in: in})
	if more {
		return nil
	}
	return r.end()
}

// end decodes what waits and hands it on.
func (r *round[In, Out]) end() error {
	if n := min(len(r.waits)/neighbours, runtime.GOMAXPROCS(0), maxDecode); n > 1 {
		r.together(n)
	} else {
		r.some(0, len(r.waits))
	}
	for i := range r.waits {
		if err := r.yield(r.waits[i].out, r.waits[i].err); err != nil {
			return err
		}
	}
	clear(r.waits)
	r.waits = r.waits[:0]
	return nil
}

// together decodes with n goroutines, this one among them.
func (r *round[In, Out]) together(n int) {
	var taken atomic.Int64
	decode := func() {
		for {
			to := int(taken.Add(neighbours))
			if to-neighbours >= len(r.waits) {
				return
			}
			r.some(to-neighbours, min(to, len(r.waits)))
		}
	}
	var others sync.WaitGroup
	for range n - 1 {
		others.Go(decode)
	}
	decode()
	others.Wait()
}

func (r *round[In, Out]) some(from, to int) {
	for i := from; i < to; i++ {
		w := &r.waits[i]
		w.out, w.err = r.decode(w.in)
	}
}

// largeReaders are those that read ahead. As many are in use as there are lists, and watches with something to read.
var largeReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, maxRound) }}

func largeReader(from io.Reader) *bufio.Reader {
	r := largeReaders.Get().(*bufio.Reader)
	r.Reset(from)
	return r
}

func putLargeReader(r *bufio.Reader) {
	r.Reset(nil)
	largeReaders.Put(r)
}

// part reads size bytes. They are valid until something is read that r has not buffered; into takes what r has no room for.
func part(r *bufio.Reader, into *[]byte, size int) (data []byte, err error) {
	if size > r.Size() {
		*into, err = readInto(r, *into, size)
		return *into, err
	}
	data, err = r.Peek(size)
	_, _ = r.Discard(len(data))
	return data, unexpected(err)
}

package listwatch

import (
	"bufio"
	"io"
	"runtime"
	"sync"
)

// What has come of a watch already need not be decoded one by one: where complete objects wait in the reader's buffer, a round of them is
// decoded by several goroutines at once. They are handed on in order, each as soon as those before it are, by the goroutine that
// ranges, which also reads, and decodes while the next one is not ready. What comes alone is decoded by that one and
// waits for nobody. The others have ended before it reads on and before the range ends, so that there is none to stop, and nothing
// is handed on that stands behind an error. A list is decoded by one: two made it no faster (docs/design.md).

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
func (r *round[In, Out]) end() (err error) {
	if n := min(len(r.waits)/neighbours, runtime.GOMAXPROCS(0), maxDecode); n > 1 {
		err = r.together(n)
	} else {
		r.some(0, len(r.waits))
		err = r.handOn(0, len(r.waits))
	}
	clear(r.waits)
	r.waits = r.waits[:0]
	return err
}

// together decodes with n goroutines, this one among them.
func (r *round[In, Out]) together(n int) error {
	var others sync.WaitGroup
	defer others.Wait()
	parts := newParts((len(r.waits) + neighbours - 1) / neighbours)
	defer parts.stop()
	bounds := func(part int) (from, to int) { return part * neighbours, min((part+1)*neighbours, len(r.waits)) }
	decode := func(part int) {
		r.some(bounds(part))
		parts.ready(part)
	}
	for range n - 1 {
		others.Go(func() {
			for part, ok := parts.take(); ok; part, ok = parts.take() {
				decode(part)
			}
		})
	}
	for part := range parts.isReady {
		for other, ok := parts.meanwhile(part); ok; other, ok = parts.meanwhile(part) {
			decode(other)
		}
		if err := r.handOn(bounds(part)); err != nil {
			return err
		}
	}
	return nil
}

// handOn yields what has been decoded.
func (r *round[In, Out]) handOn(from, to int) error {
	for i := from; i < to; i++ {
		if err := r.yield(r.waits[i].out, r.waits[i].err); err != nil {
			return err
		}
	}
	return nil
}

// parts are those of a round, some neighbours each.
type parts struct {
	mu      sync.Mutex
	change  sync.Cond // of isReady
	taken   int       // how many are decoded or being decoded
	isReady []bool
}

func newParts(n int) *parts {
	p := &parts{isReady: make([]bool, n)}
	p.change.L = &p.mu
	return p
}

// take returns the next part that nobody decodes yet.
func (p *parts) take() (part int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeLocked()
}

func (p *parts) takeLocked() (part int, ok bool) {
	if p.taken == len(p.isReady) {
		return 0, false
	}
	p.taken++
	return p.taken - 1, true
}

// meanwhile takes another part while this one is not ready, and waits where there is none; ok is false once it is.
func (p *parts) meanwhile(part int) (other int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.isReady[part] {
		if other, ok := p.takeLocked(); ok {
			return other, true
		}
		p.change.Wait()
	}
	return 0, false
}

// stop makes take return nothing from now on.
func (p *parts) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken = len(p.isReady)
}

func (p *parts) ready(part int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isReady[part] = true
	p.change.Signal()
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

package listwatch

import (
	"bufio"
	"io"
	"runtime"
	"sync"
)

// When several complete frames are already buffered, decode them in parallel (a round) and deliver
// them in order. A single frame is decoded inline.
//
// The reading goroutine also decodes and delivers. The others finish before the next read, so none
// has to be stopped. Nothing after an error is delivered. The items of a list have batches of their
// own (items.go), since a list need not wait for a read.

const (
	maxRound  = 256 << 10 // bytes read ahead, which bounds the objects of a round
	maxDecode = 4
	// maxWaits bounds the frames of a round. A quiet watch keeps their room, some 450 bytes each.
	maxWaits   = 64
	neighbours = 4 // consecutive objects per turn of a goroutine, since neighbours share most
)

// round holds the frames that are read and not yet delivered.
type round[In, Out any] struct {
	decode func(In) (Out, error)
	known  func(In) (Out, bool)   // objects that need no decoding
	yield  func(Out, error) error // delivers one; its error ends the stream
	waits  []undecoded[In, Out]
}

type undecoded[In, Out any] struct {
	in  In
	out Out
	err error
}

// take adds the next object. With more, it may leave the object for a later call; in must stay
// valid until a call without more.
func (r *round[In, Out]) take(in In, more bool) error {
	if out, ok := r.known(in); ok {
		if err := r.end(); err != nil {
			return err
		}
		return r.yield(out, nil)
	}
	r.waits = append(r.waits, undecoded[In, Out]{in: in})
	if more && len(r.waits) < maxWaits {
		return nil
	}
	return r.end()
}

// end decodes and delivers the waiting objects.
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

// together decodes with n goroutines, the calling one included.
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

func (r *round[In, Out]) handOn(from, to int) error {
	for i := from; i < to; i++ {
		if err := r.yield(r.waits[i].out, r.waits[i].err); err != nil {
			return err
		}
	}
	return nil
}

// parts are consecutive pieces of a round, one per turn of a goroutine.
type parts struct {
	mu      sync.Mutex
	change  sync.Cond // signals isReady
	taken   int       // the number of parts decoded or being decoded
	isReady []bool
}

func newParts(n int) *parts {
	p := &parts{isReady: make([]bool, n)}
	p.change.L = &p.mu
	return p
}

// take returns the next part that no goroutine decodes yet.
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

// meanwhile takes another part until this one is ready, and blocks if none is left; ok is false
// once this one is ready.
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

// largeReaders read ahead. The number in use is that of lists, and of watches with something to
// read.
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

// part reads size bytes, which stay valid until r must fill its buffer. into takes a value that is
// too large for r.
func part(r *bufio.Reader, into *[]byte, size int) (data []byte, err error) {
	if size > r.Size() {
		*into, err = readInto(r, *into, size)
		return *into, err
	}
	data, err = r.Peek(size)
	_, _ = r.Discard(len(data))
	return data, unexpected(err)
}

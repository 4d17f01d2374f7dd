package listwatch

import (
	"runtime"
	"sync"
)

// A pipeline decodes the pieces of a stream, and delivers them in order. Consecutive pieces are
// collected into batches. Up to three goroutines decode batches while the splitting goroutine goes
// on. That goroutine also delivers, and decodes when enough batches wait. Nothing behind an error
// is delivered.
//
// A list copies its pieces, and goes on over reads (items.go). The pieces of a watch are the frames
// that have arrived, in the reader's buffer: all are delivered before the next read. So an event
// waits for no read, and a quiet watch has no goroutine.

const (
	maxDecode  = 4  // goroutines, the splitting one included
	maxBatches = 16 // in flight
	neighbours = 4  // pieces of a small batch: consecutive ones share most
)

type pipeline[In, Out any] struct {
	decode  func(In) (Out, error)
	deliver func(Out, error) error // its error ends the stream
	most    int                    // pieces of a batch
	workers int                    // the maximum, beside the splitting goroutine
	// fleeting says that no buffer may keep the copied pieces.
	fleeting bool

	filling *batch[In, Out]   // nil if it is empty
	spare   []*batch[In, Out] // empty
	others  sync.WaitGroup

	mu     sync.Mutex
	change sync.Cond // signals that a batch is decoded
	// queue has the full batches, in order, until they are delivered. Only the splitting goroutine
	// adds and removes.
	queue   []*batch[In, Out]
	taken   int // the number of batches in queue that are decoded or being decoded
	working int // the workers
}

// batch is a run of consecutive pieces.
type batch[In, Out any] struct {
	pieces  []piece[In, Out]
	buffer  *[]byte // of the copied pieces; nil if there were none
	decoded bool    // guarded by pipeline.mu
}

type piece[In, Out any] struct {
	in    In
	out   Out
	err   error
	known bool // out is, and in means nothing
}

func newPipeline[In, Out any](most int, decode func(In) (Out, error), deliver func(Out, error) error) *pipeline[In, Out] {
	p := &pipeline[In, Out]{most: most, decode: decode, deliver: deliver, workers: min(runtime.GOMAXPROCS(0), maxDecode) - 1}
	p.change.L = &p.mu
	return p
}

// idle reports that everything is delivered.
func (p *pipeline[In, Out]) idle() bool { return p.filling == nil && len(p.queue) == 0 }

// put adds a piece, which must stay valid until it is delivered.
func (p *pipeline[In, Out]) put(in In) error { return p.add(piece[In, Out]{in: in}) }

// known adds a piece that needs no decoding.
func (p *pipeline[In, Out]) known(out Out) error {
	if p.idle() {
		return p.deliver(out, nil)
	}
	return p.add(piece[In, Out]{out: out, known: true})
}

// now decodes and delivers a piece behind everything before it.
func (p *pipeline[In, Out]) now(in In) error {
	if err := p.end(); err != nil {
		return err
	}
	return p.deliver(p.decode(in))
}

func (p *pipeline[In, Out]) add(next piece[In, Out]) error {
	b, err := p.room(0)
	if err == nil {
		b.pieces = append(b.pieces, next)
	}
	return err
}

// copied returns a copy of data, at most batchBytes, for the next piece.
func (p *pipeline[In, Out]) copied(data []byte) ([]byte, error) {
	b, err := p.room(len(data))
	if err != nil {
		return nil, err
	}
	if b.buffer == nil {
		b.buffer = batchBuffers.Get().(*[]byte)
	}
	start := len(*b.buffer)
	*b.buffer = append(*b.buffer, data...)
	return (*b.buffer)[start:len(*b.buffer):len(*b.buffer)], nil
}

// room returns a batch with room for another piece, of which so many bytes are copied. A full batch
// is handed on only then: a last one is decoded where it is.
func (p *pipeline[In, Out]) room(bytes int) (*batch[In, Out], error) {
	if b := p.filling; b != nil && (len(b.pieces) == p.most || b.buffer != nil && len(*b.buffer)+bytes > batchBytes) {
		if err := p.handOn(); err != nil {
			return nil, err
		}
	}
	if last := len(p.spare) - 1; p.filling == nil && last >= 0 {
		p.filling, p.spare = p.spare[last], p.spare[:last]
	} else if p.filling == nil {
		p.filling = &batch[In, Out]{pieces: make([]piece[In, Out], 0, neighbours)}
	}
	return p.filling, nil
}

// handOn gives a full batch to the workers, and delivers decoded ones.
func (p *pipeline[In, Out]) handOn() error {
	p.mu.Lock()
	p.queueLocked()
	if p.working < p.workers {
		p.working++
		p.others.Go(p.work)
	}
	p.mu.Unlock()
	return p.advance(maxBatches-1, nil)
}

func (p *pipeline[In, Out]) queueLocked() {
	if p.filling != nil {
		p.queue = append(p.queue, p.filling)
		p.filling = nil
	}
}

// end decodes and delivers everything.
func (p *pipeline[In, Out]) end() error {
	if p.idle() {
		return nil
	}
	p.mu.Lock()
	p.queueLocked()
	p.mu.Unlock()
	return p.advance(0, nil)
}

// stop forgets the pieces that are not being decoded, and waits for the rest.
func (p *pipeline[In, Out]) stop() {
	p.mu.Lock()
	p.taken = len(p.queue)
	p.mu.Unlock()
	p.others.Wait()
	for _, b := range p.spare {
		if b.buffer != nil && !p.fleeting {
			batchBuffers.Put(b.buffer)
		}
	}
}

// advance delivers the batches that are decoded. While more than most are left, it decodes, or
// waits for the workers. With arrived, it goes on until that is true.
func (p *pipeline[In, Out]) advance(most int, arrived *bool) error {
	for {
		b, decoded := p.next(most, arrived)
		switch {
		case b == nil:
			return nil
		case !decoded:
			p.decodeBatch(b)
			continue
		}
		for i := range b.pieces {
			if err := p.deliver(b.pieces[i].out, b.pieces[i].err); err != nil {
				return err
			}
		}
		clear(b.pieces)
		b.pieces, b.decoded = b.pieces[:0], false
		if b.buffer != nil {
			*b.buffer = (*b.buffer)[:0]
		}
		p.spare = append(p.spare, b)
	}
}

// next returns the first batch if it is decoded, else a batch to decode; nil if there is nothing
// to do for advance.
func (p *pipeline[In, Out]) next(most int, arrived *bool) (b *batch[In, Out], decoded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case arrived != nil && *arrived:
			return nil, false
		case len(p.queue) > 0 && p.queue[0].decoded:
			b, p.queue = p.queue[0], p.queue[1:]
			p.taken--
			return b, true
		case arrived == nil && len(p.queue) <= most:
			return nil, false
		case len(p.queue) == 0:
			p.queueLocked()
		case arrived != nil: // the workers have all batches, and the next bytes come first
			p.change.Wait()
			continue
		}
		if b = p.takeLocked(); b != nil {
			return b, false
		}
		p.change.Wait()
	}
}

// takeLocked returns the next batch that no goroutine decodes yet.
func (p *pipeline[In, Out]) takeLocked() *batch[In, Out] {
	if p.taken == len(p.queue) {
		return nil
	}
	p.taken++
	return p.queue[p.taken-1]
}

// work decodes batches until none waits.
func (p *pipeline[In, Out]) work() {
	for {
		p.mu.Lock()
		b := p.takeLocked()
		if b == nil {
			p.working--
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		p.decodeBatch(b)
	}
}

func (p *pipeline[In, Out]) decodeBatch(b *batch[In, Out]) {
	for i := range b.pieces {
		if next := &b.pieces[i]; !next.known {
			next.out, next.err = p.decode(next.in)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b.decoded = true
	p.change.Signal()
}

var batchBuffers = sync.Pool{New: func() any {
	buffer := make([]byte, 0, batchBytes)
	return &buffer
}}

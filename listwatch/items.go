package listwatch

import (
	"io"
	"runtime"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/store"
)

// The items of a list are collected into batches. Up to three goroutines decode batches while the
// goroutine that ranges over the list reads on. That goroutine also delivers the items in order,
// and decodes when enough batches wait. With one core there are no batches: each item is decoded in
// the reader's buffer.
//
// A read may block, and no item that has arrived waits for it: see Read.

const (
	batchBytes = 64 << 10 // larger items are decoded alone, without a copy
	batchItems = 256
	maxBatches = 16 // in flight, so that about 1 MiB of the list is copied
)

// items decodes the items of one list, and delivers them in order. Its methods are for the
// goroutine that ranges over the list.
type items[T store.Object] struct {
	decoder  *decoder[T]
	encoding encoding[T]
	body     io.ReadCloser
	yield    func(T, error) bool
	workers  int // the maximum, beside the ranging goroutine

	filling *batch[T]   // nil if it is empty
	spare   []*batch[T] // empty
	others  sync.WaitGroup

	mu      sync.Mutex
	change  sync.Cond   // signals that a batch is decoded
	queue   []*batch[T] // full, in order, and not delivered
	taken   int         // the number of batches in queue that are decoded or being decoded
	working int         // the workers
}

// batch is a run of consecutive items.
type batch[T store.Object] struct {
	buffer  *[]byte // of the items that are not known
	items   []item[T]
	decoded bool // guarded by items.mu
}

// item is an item whose bytes are in a batch, or a known object or error.
type item[T store.Object] struct {
	size  int
	kind  schema.GroupVersionKind
	held  counterpart[T]
	known bool
	obj   T
	err   error
}

func newItems[T store.Object](d *decoder[T], body io.ReadCloser, yield func(T, error) bool) *items[T] {
	l := &items[T]{decoder: d, body: body, yield: yield, workers: min(runtime.GOMAXPROCS(0), maxDecode) - 1}
	l.change.L = &l.mu
	return l
}

// take adds an item. data may be reused afterwards.
func (l *items[T]) take(data []byte, kind schema.GroupVersionKind) error {
	held := l.decoder.held
	i := item[T]{size: len(data), kind: kind}
	if held != nil {
		if i.held = held.find(l.encoding.identity(data)); held.isFrom(i.held, data) {
			return l.pass(i.held.obj, nil)
		}
	}
	if l.workers < 1 || len(data) > batchBytes {
		if err := l.end(); err != nil {
			return err
		}
		i.decode(l.decoder, l.encoding, data)
		return l.deliver(&i)
	}
	if l.filling != nil && len(*l.filling.buffer)+len(data) > batchBytes {
		if err := l.handOn(); err != nil {
			return err
		}
	}
	b := l.fill()
	*b.buffer = append(*b.buffer, data...)
	return l.add(b, i)
}

// pass adds an object that needs no decoding, or an error in the place of one.
func (l *items[T]) pass(obj T, err error) error {
	i := item[T]{known: true, obj: obj, err: err}
	if l.filling == nil && len(l.queue) == 0 {
		return l.deliver(&i)
	}
	return l.add(l.fill(), i)
}

// fill returns the batch that is being filled.
func (l *items[T]) fill() *batch[T] {
	if last := len(l.spare) - 1; l.filling == nil && last >= 0 {
		l.filling, l.spare = l.spare[last], l.spare[:last]
	} else if l.filling == nil {
		l.filling = &batch[T]{buffer: batchBuffers.Get().(*[]byte)}
	}
	return l.filling
}

func (l *items[T]) add(b *batch[T], i item[T]) error {
	b.items = append(b.items, i)
	if len(b.items) < batchItems {
		return nil
	}
	return l.handOn()
}

// handOn gives a full batch to the workers, and delivers decoded ones.
func (l *items[T]) handOn() error {
	l.mu.Lock()
	l.queueLocked()
	if l.working < l.workers {
		l.working++
		l.others.Go(l.work)
	}
	l.mu.Unlock()
	return l.advance(maxBatches-1, nil)
}

func (l *items[T]) queueLocked() {
	if l.filling != nil {
		l.queue = append(l.queue, l.filling)
		l.filling = nil
	}
}

// Read reads from the body. Meanwhile, items that have arrived are decoded and delivered.
func (l *items[T]) Read(p []byte) (int, error) {
	if l.filling == nil && len(l.queue) == 0 {
		return l.body.Read(p)
	}
	var n int
	var err error
	arrived, left := false, true
	var reading sync.WaitGroup
	reading.Go(func() {
		n, err = l.body.Read(p)
		l.mu.Lock()
		defer l.mu.Unlock()
		arrived = true
		l.change.Signal()
	})
	defer func() {
		if left {
			_ = l.body.Close() // ends the read
		}
		reading.Wait()
	}()
	if err := l.advance(0, &arrived); err != nil {
		return 0, err
	}
	left = false
	reading.Wait()
	return n, err
}

// end decodes and delivers everything.
func (l *items[T]) end() error {
	l.mu.Lock()
	l.queueLocked()
	l.mu.Unlock()
	return l.advance(0, nil)
}

// stop forgets what is not being decoded, and waits for the rest.
func (l *items[T]) stop() {
	l.mu.Lock()
	l.taken = len(l.queue)
	l.mu.Unlock()
	l.others.Wait()
	for _, b := range l.spare {
		batchBuffers.Put(b.buffer)
	}
}

// advance delivers the batches that are decoded. While more than most are left, it decodes, or
// waits for the workers. With arrived, it goes on until that is true.
func (l *items[T]) advance(most int, arrived *bool) error {
	for {
		b, decoded := l.next(most, arrived)
		switch {
		case b == nil:
			return nil
		case !decoded:
			l.decode(b)
			continue
		}
		for i := range b.items {
			if err := l.deliver(&b.items[i]); err != nil {
				return err
			}
		}
		clear(b.items)
		*b.buffer, b.items, b.decoded = (*b.buffer)[:0], b.items[:0], false
		l.spare = append(l.spare, b)
	}
}

// next returns the first batch if it is decoded, else a batch to decode; nil if there is nothing
// to do for advance.
func (l *items[T]) next(most int, arrived *bool) (b *batch[T], decoded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		switch {
		case arrived != nil && *arrived:
			return nil, false
		case len(l.queue) > 0 && l.queue[0].decoded:
			b, l.queue = l.queue[0], l.queue[1:]
			l.taken--
			return b, true
		case arrived == nil && len(l.queue) <= most:
			return nil, false
		case len(l.queue) == 0:
			l.queueLocked()
		case arrived != nil: // the workers have all batches, and the next bytes come first
			l.change.Wait()
			continue
		}
		if b = l.takeLocked(); b != nil {
			return b, false
		}
		l.change.Wait()
	}
}

// takeLocked returns the next batch that no goroutine decodes yet.
func (l *items[T]) takeLocked() *batch[T] {
	if l.taken == len(l.queue) {
		return nil
	}
	l.taken++
	return l.queue[l.taken-1]
}

// work decodes batches until none waits.
func (l *items[T]) work() {
	for {
		l.mu.Lock()
		b := l.takeLocked()
		if b == nil {
			l.working--
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		l.decode(b)
	}
}

func (l *items[T]) decode(b *batch[T]) {
	rest := *b.buffer
	for i := range b.items {
		in := &b.items[i]
		if in.known {
			continue
		}
		in.decode(l.decoder, l.encoding, rest[:in.size:in.size])
		rest = rest[in.size:]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.decoded = true
	l.change.Signal()
}

func (l *items[T]) deliver(i *item[T]) error {
	if !l.yield(i.obj, i.err) {
		return errStopped
	}
	return nil
}

func (i *item[T]) decode(d *decoder[T], e encoding[T], data []byte) {
	obj, err := e.object(data, i.kind, nil)
	if err == nil {
		err = named(obj)
	}
	if err != nil {
		i.err = &DecodeError{Op: "list", Object: e.key(data), Err: err}
		return
	}
	i.obj = d.held.settle(i.held, data, obj)
}

var batchBuffers = sync.Pool{New: func() any {
	buffer := make([]byte, 0, batchBytes)
	return &buffer
}}

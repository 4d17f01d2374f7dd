package listwatch

import (
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/store"
)

// A read of a list may block, and no item that has arrived waits for it: see Read.

const (
	batchBytes = 64 << 10 // larger items are decoded alone, without a copy; 16 batches are 1 MiB
	batchItems = 256
)

// items decodes the items of one list, and delivers them in order. Its methods are for the
// goroutine that ranges over the list.
type items[T store.Object] struct {
	*pipeline[item[T], T]
	held *heldCopy[T]
	cuts bool // managedFields
	body io.ReadCloser

	encoding encoding[T]

	taken, bytes int // items, and their bytes on the wire
}

// item is an item before it is decoded.
type item[T store.Object] struct {
	data []byte
	kind schema.GroupVersionKind
	held counterpart[T]
}

func newItems[T store.Object](d *decoder[T], body io.ReadCloser, yield func(T, error) bool) *items[T] {
	l := &items[T]{held: d.held, cuts: d.cuts, body: body}
	l.pipeline = newPipeline(batchItems, func(i item[T]) (T, error) { return d.item(l.encoding, i) }, func(obj T, err error) error {
		if !yield(obj, err) {
			return errStopped
		}
		return nil
	})
	l.fleeting = d.fleeting
	return l
}

// take adds an item. data may be reused afterwards.
func (l *items[T]) take(data []byte, kind schema.GroupVersionKind) (err error) {
	l.taken++
	l.bytes += len(data)
	if l.cuts {
		data = l.encoding.lean(data)
	}
	i := item[T]{data: data, kind: kind}
	if l.held != nil {
		if i.held = l.held.find(l.encoding.identity(data)); l.held.isFrom(&i.held, data) {
			return l.known(i.held.obj)
		}
	}
	if l.workers < 1 || len(data) > batchBytes {
		return l.now(i)
	}
	if i.data, err = l.copied(data); err != nil {
		return err
	}
	return l.put(i)
}

func (d *decoder[T]) item(e encoding[T], i item[T]) (T, error) {
	obj, _, err := d.object(e, i.data, i.kind, sharing.Last{})
	if err == nil {
		err = named(obj, d.asClientGo)
	}
	if err != nil {
		var none T
		return none, &DecodeError{Op: "list", Object: e.key(i.data), Err: err}
	}
	return d.held.settle(i.held, i.data, obj, nil), nil
}

// Read reads from the body. Meanwhile, items that have arrived are decoded and delivered.
func (l *items[T]) Read(b []byte) (int, error) {
	if l.idle() {
		return l.body.Read(b)
	}
	var n int
	var err error
	arrived, left := false, true
	var reading sync.WaitGroup
	reading.Go(func() {
		n, err = l.body.Read(b)
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

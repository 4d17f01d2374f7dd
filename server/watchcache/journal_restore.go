package watchcache

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// head is the first record of a journal: what it is of, and where its history begins.
type head struct {
	of       string // the kind, its names in the API and the encoding
	identity string
	objects  uint64 // of the base, which follow
	// Of the window at the base.
	floor, complete uint64
}

func (h head) append(r *records) {
	r.begin(headRecord)
	r.text(h.of)
	r.text(h.identity)
	r.number(h.objects)
	r.number(h.floor)
	r.number(h.complete)
	r.end()
}

func readHead(r *record) head {
	return head{of: r.text(), identity: r.text(), objects: r.number(), floor: r.number(), complete: r.number()}
}

// of describes what a journal of the cache holds, for people and to compare.
func (c codec[T]) of() string {
	return fmt.Sprintf("%s (%s) as %s", c.kind.GroupVersionResource(), c.kind.Kind, c.name())
}

// restoring fills an empty cache from a journal.
type restoring[T store.Object] struct {
	*recordReader
	cache *Cache[T]
	codec codec[T]
	// The gap under way, with its changes so far: it counts once it is whole.
	gap     *gap
	missing uint64
	pending []*change[T]
}

// restore fills an empty cache with the content and the history of a journal, and returns how many
// bytes of it are the base, and how many are whole. On an error the cache is empty.
func (c *Cache[T]) restore(file io.Reader, size int64, codec codec[T], identity string) (base, whole int64, err error) {
	records, err := openRecords(file, size)
	if err != nil {
		return 0, 0, err
	}
	r := &restoring[T]{recordReader: records, cache: c, codec: codec}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err = r.base(identity); err == nil {
		base = r.good
		whole, err = r.log()
	}
	if err != nil {
		c.forgetRestored()
		return 0, 0, err
	}
	c.mu.Lock()
	c.filled = true
	c.mu.Unlock()
	c.changed.Broadcast()
	return base, whole, nil
}

// forgetRestored empties a cache that was restored in part. The writing lock is held.
func (c *Cache[T]) forgetRestored() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = 0
	c.window.clear(0, false)
	_ = c.objects.Replace(store.Items[T](), store.At("")) // without items it does not fail
}

// base restores the content at the beginning of the history.
func (r *restoring[T]) base(identity string) error {
	first, err := r.next()
	if errors.Is(err, errTorn) || errors.Is(err, io.EOF) {
		err = errors.New("it is cut off in its first record")
	}
	if err != nil {
		return err
	}
	h := readHead(&first)
	switch {
	case first.kind != headRecord || first.bad:
		return errors.New("its first record is not the head of a journal")
	case h.of != r.codec.of():
		return fmt.Errorf("it is of %s, and the cache is of %s", h.of, r.codec.of())
	case h.identity != identity:
		return fmt.Errorf("it is of the upstream %q, and the cache is of %q", h.identity, identity)
	}
	from := r.good
	if err := r.cache.objects.Replace(r.objects(h.objects), store.At(formatVersion(h.floor))); err != nil {
		return err
	}
	if r.codec.memo != nil {
		r.codec.memo.Listed(int(h.objects), int(r.good-from))
	}
	r.cache.mu.Lock()
	defer r.cache.mu.Unlock()
	w := &r.cache.window
	w.clear(h.floor, false)
	w.complete = h.complete
	r.cache.version = max(h.floor, h.complete)
	return nil
}

func (r *restoring[T]) objects(n uint64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for range n {
			var obj T
			next, err := r.next()
			switch {
			case errors.Is(err, errTorn), errors.Is(err, io.EOF):
				err = errors.New("it is cut off among its objects")
			case err == nil && next.kind != objectRecord:
				err = r.damaged()
			case err == nil:
				obj, err = r.read(&next)
			}
			if !yield(obj, err) || err != nil {
				return
			}
		}
	}
}

// read is the object at the end of a record.
func (r *restoring[T]) read(from *record) (obj T, err error) {
	if obj, err = r.codec.read(from); err == nil && !from.bad {
		return obj, nil
	}
	return obj, fmt.Errorf("the record before byte %d holds no %s", r.good, r.codec.kind.Kind)
}

// log restores the history, and returns its end. A record that was not completed is left out, and a
// gap of which changes are missing.
func (r *restoring[T]) log() (whole int64, err error) {
	for {
		if r.missing == 0 {
			whole = r.good
		}
		next, err := r.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errTorn):
			return whole, nil
		case err == nil:
			err = r.take(&next)
		}
		if err != nil {
			return 0, err
		}
	}
}

// take restores what a record tells.
func (r *restoring[T]) take(next *record) error {
	switch next.kind {
	case putRecord, goneRecord:
		ch, err := r.change(next)
		if err != nil {
			return err
		}
		if r.missing == 0 {
			ch.complete = ch.version
			return r.enter(ch)
		}
		ch.gap, ch.complete = r.gap, math.MaxUint64
		r.pending = append(r.pending, ch)
		if r.missing--; r.missing > 0 {
			return nil
		}
		ch.complete = r.gap.to
		return r.endGap()
	case gapRecord:
		if r.missing > 0 {
			return r.damaged()
		}
		r.gap = &gap{before: next.number(), to: next.number(), untold: next.flag()}
		if r.missing = next.number(); r.missing == 0 && !next.bad {
			return r.endGap()
		}
	case atRecord:
		r.reach(next.number())
	default:
		return r.damaged()
	}
	if next.bad {
		return r.damaged()
	}
	return nil
}

// change is the change that a record tells, without the state before it.
func (r *restoring[T]) change(from *record) (ch *change[T], err error) {
	ch = &change[T]{version: from.number(), bytes: int(from.number())}
	if from.kind == putRecord {
		ch.now, err = r.read(from)
		return ch, err
	}
	namespace, name := from.text(), from.text()
	if from.flag() {
		ch.gone, err = r.read(from)
		return ch, err
	}
	ch.old = r.codec.kind.Empty() // it has the name until the state before is known
	ch.old.SetNamespace(namespace)
	ch.old.SetName(name)
	ch.old.SetResourceVersion(formatVersion(ch.version))
	if from.bad {
		return nil, r.damaged()
	}
	return ch, nil
}

// enter makes a restored change, and puts it into the window.
func (r *restoring[T]) enter(ch *change[T]) error {
	c := r.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	d, err := r.do(ch)
	if err != nil {
		return err
	}
	if ch.old = d.Old; !d.Unchanged() {
		c.admit(ch)
	}
	c.version = max(c.version, ch.version)
	return nil
}

// do changes the content.
func (r *restoring[T]) do(ch *change[T]) (store.Change[T], error) {
	if !pointer.None(ch.now) {
		return r.cache.objects.Put(ch.now)
	}
	if !pointer.None(ch.gone) {
		return r.cache.objects.Remove(ch.gone)
	}
	return r.cache.objects.Remove(ch.old)
}

// endGap restores a gap that is whole.
func (r *restoring[T]) endGap() error {
	r.cache.mu.Lock()
	r.cache.window.skip(r.gap)
	r.cache.mu.Unlock()
	for _, ch := range r.pending {
		if err := r.enter(ch); err != nil {
			return err
		}
	}
	r.pending = nil
	r.reach(r.gap.to)
	return nil
}

// reach restores a bookmark.
func (r *restoring[T]) reach(version uint64) {
	c := r.cache
	_ = c.objects.Bookmark(formatVersion(version)) // which has no error
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = max(c.version, version)
}

package watchcache

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// head is the first entry of a journal: what it is of, and where its history begins.
type head struct {
	of       string // the kind, its names in the API and the encoding
	identity string
	// Of the window at the base. The objects of the base follow, and then its version.
	floor, complete uint64
}

func (h head) append(b *block) {
	b.begin(headEntry)
	b.text(h.of)
	b.text(h.identity)
	b.number(h.floor)
	b.number(h.complete)
}

func readHead(b *blocks) head {
	return head{of: b.text(), identity: b.text(), floor: b.number(), complete: b.number()}
}

// of describes what a journal of the cache holds, for people and to compare.
func (c codec[T]) of() string {
	return fmt.Sprintf("%s (%s) as %s", c.kind.GroupVersionResource(), c.kind.Kind, c.name())
}

// restoring fills an empty cache from a journal.
type restoring[T store.Object] struct {
	*blocks
	cache *Cache[T]
	codec codec[T]
	gap   *gap // the last one
}

// restore fills an empty cache with the content and the history of a journal, and returns how many
// bytes of it are the base, and how many are whole. On an error the cache is empty.
func (c *Cache[T]) restore(file io.Reader, size int64, codec codec[T], identity string) (base, whole int64, err error) {
	blocks, err := openBlocks(file, size)
	if err != nil {
		return 0, 0, err
	}
	r := &restoring[T]{blocks: blocks, cache: c, codec: codec}
	if err = r.base(identity); err == nil {
		base = r.good
		err = r.log()
	}
	if err != nil {
		c.empty()
		return 0, 0, err
	}
	return base, r.good, nil
}

// empty takes back a restoration that has failed.
func (c *Cache[T]) empty() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version, c.filled = 0, false
	c.window.clear(0, false)
	_ = c.objects.Replace(store.Items[T](), store.At("")) // without items it does not fail
}

// base restores the content at the beginning of the history.
func (r *restoring[T]) base(identity string) error {
	kind, err := r.entry()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	h := readHead(r.blocks)
	switch {
	case kind != headEntry || r.bad:
		return errors.New("it is damaged, or cut off, in its head")
	case h.of != r.codec.of():
		return fmt.Errorf("it is of %s, and the cache is of %s", h.of, r.codec.of())
	case h.identity != identity:
		return fmt.Errorf("it is of the upstream %q, and the cache is of %q", h.identity, identity)
	}
	from, n := r.good, 0
	if err := r.cache.Replace(r.objects(&n), store.At(formatVersion(h.complete))); err != nil {
		return err
	}
	if r.codec.memo != nil {
		r.codec.memo.Listed(n, int(r.good-from))
	}
	w := &r.cache.window
	w.floor = max(w.floor, h.floor)
	return r.take(atEntry)
}

// objects are those of the base. It counts them.
func (r *restoring[T]) objects(n *int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			var obj T
			kind, err := r.entry()
			switch {
			case err == nil && kind == atEntry:
				return
			case errors.Is(err, io.EOF), err == nil && kind != objectEntry:
				err = fmt.Errorf("it is damaged, or cut off, among its objects, at byte %d", r.good)
			case err == nil:
				*n++
				obj, err = r.read()
			}
			if !yield(obj, err) || err != nil {
				return
			}
		}
	}
}

// read is the object at the end of an entry.
func (r *restoring[T]) read() (obj T, err error) {
	if obj, err = r.codec.read(r.blocks); err == nil && !r.bad {
		return obj, nil
	}
	return obj, fmt.Errorf("it is damaged: an entry before byte %d holds no %s", r.good, r.codec.kind.Kind)
}

// log restores the history. It ends with the last block that is whole.
func (r *restoring[T]) log() error {
	for {
		kind, err := r.entry()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = r.take(kind)
		}
		if err != nil {
			return err
		}
	}
}

// take restores what an entry tells.
func (r *restoring[T]) take(kind entryKind) error {
	c := r.cache
	var ch *change[T]
	var err error
	if kind == putEntry || kind == goneEntry {
		if ch, err = r.change(kind); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch kind {
	case putEntry, goneEntry:
		return r.enter(ch)
	case gapEntry:
		r.gap = &gap{before: r.number(), to: r.number(), untold: r.flag()}
		c.window.skip(r.gap)
	case atEntry:
		version := r.number()
		c.version = max(c.version, version)
		err = c.objects.Bookmark(formatVersion(version))
	default:
		r.bad = true
	}
	if r.bad {
		return fmt.Errorf("it is damaged before byte %d", r.good)
	}
	return err
}

// change is the change that an entry tells, without the state before it.
func (r *restoring[T]) change(kind entryKind) (ch *change[T], err error) {
	ch = &change[T]{}
	if r.flag() {
		ch.gap = r.gap
	}
	ch.version = r.number()
	ch.complete = ch.version + r.number()
	ch.bytes = int(r.number())
	if kind == putEntry {
		ch.now, err = r.read()
		return ch, err
	}
	namespace, name := r.text(), r.text()
	if r.flag() {
		ch.gone, err = r.read()
		return ch, err
	}
	ch.old = r.codec.kind.Empty() // it has the name until the state before is known
	ch.old.SetNamespace(namespace)
	ch.old.SetName(name)
	ch.old.SetResourceVersion(formatVersion(ch.version))
	return ch, nil
}

// enter makes a restored change, and puts it into the window. The cache's mu is held.
func (r *restoring[T]) enter(ch *change[T]) error {
	objects, do := r.cache.objects, r.cache.objects.Remove
	obj := ch.old
	switch {
	case !pointer.None(ch.now):
		obj, do = ch.now, objects.Put
	case !pointer.None(ch.gone):
		obj = ch.gone
	}
	d, err := do(obj)
	if err != nil {
		return err
	}
	if ch.old = d.Old; !d.Unchanged() {
		r.cache.admit(ch)
	}
	r.cache.version = max(r.cache.version, ch.version)
	return nil
}

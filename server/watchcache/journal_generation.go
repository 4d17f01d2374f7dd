package watchcache

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"github.com/tributary-go/tributary/internal/ownfile"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// generation is one file of a journal: a base, the content at the beginning of the window, and the
// changes since then.
type generation[T store.Object] struct {
	cache *Cache[T]
	codec codec[T]
	file  *os.File
	base  int64 // the length at which it was whole for the first time
	size  int64
	out   block // still to be written

	position uint64 // of the next change in the window
	begun    uint64 // how often the window had been cleared
	version  uint64 // up to which it has everything
	gaps     uint64 // the end of the last gap that it has
	gap      *gap   // the one under way
}

const (
	// journalChunk is about the bytes of one write.
	journalChunk = 256 << 10
	// journalLeast is the length of the changes from which on a file is begun anew.
	journalLeast = 4 << 20
	// followEvery is how many objects of a new file are written between two looks for changes that
	// the present file must have, and yieldEvery between two turns of other goroutines: a writer of
	// the cache would else wait for up to ten milliseconds.
	followEvery, yieldEvery = 256, 16
)

var (
	errCleared = errors.New("the cache has begun another history")
	errBehind  = errors.New("the disk is slower than the writes to the cache: the journal is begun anew")
)

// isLong reports whether the changes are twice as long as the content, and than least. With as long
// as that, half again of the processor time went into beginning anew.
func (g *generation[T]) isLong(least int64) bool { return g.size-g.base > 2*max(g.base, least) }

// follow writes what the file lacks. After a failure there is no such file any more. One of a
// history that the cache no longer has is removed.
func (j *Journal[T]) follow() error {
	if j.writes == nil {
		return nil
	}
	err := j.writes.follow()
	if err == nil {
		return nil
	}
	_ = j.writes.file.Truncate(j.writes.size) // else its end is cut off when it is read
	_ = j.writes.file.Close()
	if j.writes = nil; !errors.Is(err, errCleared) {
		return err
	}
	if err = os.Remove(j.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// follow appends the changes since the last one.
func (g *generation[T]) follow() error {
	n, err := g.news()
	if err == nil {
		err = g.tell(n, g.flushLong)
	}
	if err == nil {
		err = g.flush()
	}
	return err
}

// news are what a cache has and a file lacks: changes, gaps, and a version.
type news[T store.Object] struct {
	changes []*change[T]
	gaps    []*gap
	next    uint64 // the position behind the changes
	version uint64
}

func (g *generation[T]) news() (n news[T], err error) {
	c := g.cache
	c.mu.RLock()
	defer c.mu.RUnlock()
	w := &c.window
	switch {
	case w.cleared != g.begun:
		return n, errCleared
	case g.position < w.First():
		return n, errBehind
	}
	return c.newsSince(g.position, g.gaps), nil
}

// newsSince are the changes from a position on, and the gaps that end behind a version. mu is held.
func (c *Cache[T]) newsSince(position, version uint64) news[T] {
	w := &c.window
	n := news[T]{next: w.Next(), version: c.contentVersion(), changes: make([]*change[T], 0, w.Next()-position)}
	for number := position; number < n.next; number++ {
		n.changes = append(n.changes, w.At(number))
	}
	first := slices.IndexFunc(w.gaps, func(g *gap) bool { return g.to > version })
	if first >= 0 {
		n.gaps = slices.Clone(w.gaps[first:])
	}
	return n
}

// contentVersion is that of the present content: a watch is resumed from there. An object with a
// version from the future moves the window, and does not move it. mu is held.
func (c *Cache[T]) contentVersion() uint64 {
	content := c.present()
	version, _ := strconv.ParseUint(content.ResourceVersion(), 10, 64)
	return version
}

// tell appends news. It calls pass after each change that may be the last of a block.
func (g *generation[T]) tell(n news[T], pass func() error) error {
	for _, ch := range n.changes {
		for len(n.gaps) > 0 && n.gaps[0] != ch.gap && n.gaps[0].before < ch.version {
			g.enterGap(n.gaps[0])
			n.gaps = n.gaps[1:]
		}
		if g.enterGap(ch.gap); len(n.gaps) > 0 && n.gaps[0] == ch.gap {
			n.gaps = n.gaps[1:]
		}
		err := g.addChange(ch)
		if err == nil && ch.gap == nil {
			err = pass()
		}
		if err != nil {
			return err
		}
	}
	for _, skipped := range n.gaps {
		g.enterGap(skipped)
	}
	g.enterGap(nil)
	g.reach(n.version)
	g.position = n.next
	return nil
}

// enterGap ends the gap under way, unless it is the next one, and begins that; nil: there is none.
func (g *generation[T]) enterGap(next *gap) {
	if g.gap == next {
		return
	}
	if g.gap != nil {
		g.reach(g.gap.to)
	}
	if g.gap = next; next != nil {
		g.gaps = next.to
		g.out.begin(gapEntry)
		g.out.number(next.before)
		g.out.number(next.to)
		g.out.flag(next.untold)
	}
}

// reach appends a version.
func (g *generation[T]) reach(version uint64) {
	if version > g.version {
		g.version = version
		g.out.begin(atEntry)
		g.out.number(version)
	}
}

func (g *generation[T]) addChange(ch *change[T]) error {
	last, kind := ch.now, putEntry
	if pointer.None(ch.now) {
		kind = goneEntry
		ch.making.Lock()
		last = ch.gone
		ch.making.Unlock()
	}
	g.version = max(g.version, ch.version)
	g.out.begin(kind)
	g.out.flag(ch.gap != nil)
	g.out.number(ch.version)
	g.out.number(ch.complete - ch.version)
	g.out.number(uint64(ch.bytes))
	if kind == goneEntry {
		g.out.text(ch.old.GetNamespace())
		g.out.text(ch.old.GetName())
		g.out.flag(!pointer.None(last))
	}
	if pointer.None(last) {
		return nil
	}
	return g.codec.append(&g.out, last)
}

// flushLong is flush once that is worth it.
func (g *generation[T]) flushLong() error {
	if len(g.out.bytes) < journalChunk {
		return nil
	}
	return g.flush()
}

// flush writes the block that is still to be written.
func (g *generation[T]) flush() error {
	if len(g.out.bytes) == 0 {
		return nil
	}
	g.out.seal()
	_, err := g.file.Write(g.out.bytes)
	if err == nil {
		g.size += int64(len(g.out.bytes))
	}
	if g.out.bytes = g.out.bytes[:0]; cap(g.out.bytes) > journalChunk/4 && g.base > 0 {
		g.out.bytes = nil // it grows in bursts
	}
	return err
}

// begin makes a new file, and puts it in the place of the present one. Until then the present one
// gets the changes, too.
func (j *Journal[T]) begin(ctx context.Context) error {
	b, ok := j.cache.beginning()
	if !ok {
		return nil
	}
	file, err := ownfile.Begin(j.path)
	if err != nil {
		return err
	}
	g := &generation[T]{cache: j.cache, codec: j.codec, file: file, begun: b.begun}
	if err = j.fill(ctx, g, b); err == nil {
		err = g.follow()
	}
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = ownfile.Commit(file, j.path)
	}
	if err != nil {
		ownfile.Discard(file)
		if isFull(err) && j.writes == nil {
			_ = os.Remove(j.path) // it is out of date, and takes the room
		}
		return err
	}
	if j.writes != nil {
		_ = j.writes.file.Close()
	}
	g.base = g.size
	j.writes = g
	return nil
}

// isFull reports whether a disk has no room.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// beginning is the content of a cache at the beginning of its window, and the changes since then.
type beginning[T store.Object] struct {
	head
	news[T]
	content view[T]
	begun   uint64
}

// beginning is a history that begins as early as the window; false if the cache is empty.
func (c *Cache[T]) beginning() (b beginning[T], ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	w := &c.window
	if !c.filled {
		return b, false
	}
	first := w.First()
	b.floor, b.complete, b.begun = w.floor, w.complete, w.cleared
	// A gap of which changes have been dropped tells nothing: its versions are not known.
	for ; b.complete == math.MaxUint64 && first < w.Next(); first++ {
		b.floor, b.complete = w.At(first).version, w.At(first).complete
	}
	b.news = c.newsSince(first, b.floor)
	b.content = view[T]{present: c.present(), undo: map[objectKey]T{}}
	return b, true
}

// each yields the content at the beginning.
func (b beginning[T]) each(yield func(T) bool) {
	for _, obj := range b.content.present.All() {
		if !b.content.undone(obj) && !yield(obj) {
			return
		}
	}
	for _, obj := range b.content.undo {
		if !pointer.None(obj) && !yield(obj) {
			return
		}
	}
}

// fill writes a beginning.
func (j *Journal[T]) fill(ctx context.Context, g *generation[T], b beginning[T]) error {
	written := 0
	pass := func() error {
		if written++; written%yieldEvery == 0 {
			runtime.Gosched()
		}
		if written%followEvery > 0 {
			return nil
		}
		if err := j.follow(); err != nil {
			j.failed(err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return g.flushLong()
	}
	for _, ch := range b.changes { // without the cache's lock
		b.content.takeBack(ch)
	}
	b.of, b.identity = j.codec.of(), j.identity
	if _, err := g.file.WriteString(journalMagic); err != nil {
		return err
	}
	g.size = int64(len(journalMagic))
	b.head.append(&g.out)
	for obj := range b.each {
		g.out.begin(objectEntry)
		err := j.codec.append(&g.out, obj)
		if err == nil {
			err = pass()
		}
		if err != nil {
			return err
		}
	}
	g.reach(b.complete) // it ends the base
	return g.tell(b.news, pass)
}

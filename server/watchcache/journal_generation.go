package watchcache

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
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
	out   records // still to be written

	position uint64 // of the next change in the window
	begun    uint64 // how often the window had been cleared
	version  uint64 // up to which it has everything
	gaps     uint64 // the end of the last gap that it has
}

const (
	// journalChunk is about the bytes of one write.
	journalChunk = 256 << 10
	// journalLeast is the length of the changes from which on a file is begun anew.
	journalLeast = 4 << 20
	// followEvery is how many objects of a new file are written between two looks for changes that
	// the present file must have.
	followEvery = 256
)

var (
	errCleared = errors.New("the cache has begun another history")
	errBehind  = errors.New("the disk is slower than the writes to the cache: the journal is begun anew")
)

// isLong reports whether the changes are longer than the content, and than least.
func (g *generation[T]) isLong(least int64) bool { return g.size-g.base > max(g.base, least) }

// resume goes on with the file that the cache was restored from.
func (j *Journal[T]) resume(from found) (*generation[T], error) {
	j.found = found{}
	file, err := os.OpenFile(j.path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && (!os.SameFile(info, from.info) || info.Size() != from.info.Size()) {
		err = errors.New("another process has written it")
	}
	if err == nil {
		err = file.Truncate(from.whole)
	}
	if err == nil {
		_, err = file.Seek(from.whole, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &generation[T]{
		cache: j.cache, codec: j.codec, file: file, base: from.base, size: from.whole,
		position: from.next, begun: from.begun, version: from.version, gaps: from.gaps,
	}, nil
}

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
	if err != nil {
		return err
	}
	if err = g.tell(n, g.flushLong); err != nil {
		return err
	}
	return g.flush()
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
	n.next, n.version = w.Next(), c.contentVersion()
	for number := g.position; number < n.next; number++ {
		n.changes = append(n.changes, w.At(number))
	}
	for _, skipped := range w.gaps {
		if skipped.to > g.gaps {
			n.gaps = append(n.gaps, skipped)
		}
	}
	return n, nil
}

// contentVersion is that of the present content: a watch is resumed from there. An object with a
// version from the future moves the window, and does not move it. mu is held.
func (c *Cache[T]) contentVersion() uint64 {
	text := ""
	if c.replacing != nil {
		text = c.replacing.ResourceVersion()
	} else {
		text = c.objects.ResourceVersion()
	}
	version, _ := strconv.ParseUint(text, 10, 64)
	return version
}

// tell appends news. It calls pass after each change, between two records.
func (g *generation[T]) tell(n news[T], pass func() error) error {
	in := (*gap)(nil)
	for i, ch := range n.changes {
		for len(n.gaps) > 0 && n.gaps[0] != ch.gap && n.gaps[0].before < ch.version {
			g.addGap(n.gaps[0], 0)
			n.gaps = n.gaps[1:]
		}
		if ch.gap != nil && ch.gap != in {
			g.addGap(ch.gap, countOf(ch.gap, n.changes[i:]))
			if len(n.gaps) > 0 && n.gaps[0] == ch.gap {
				n.gaps = n.gaps[1:]
			}
		}
		in = ch.gap
		if err := g.addChange(ch); err != nil {
			return err
		}
		if err := pass(); err != nil {
			return err
		}
	}
	for _, skipped := range n.gaps {
		g.addGap(skipped, 0)
	}
	if g.position = n.next; n.version > g.version {
		g.out.begin(atRecord)
		g.out.number(n.version)
		g.out.end()
		g.version = n.version
	}
	return nil
}

// countOf is how many changes are in a gap, which the first of them is. All of them come at once.
func countOf[T store.Object](skipped *gap, changes []*change[T]) (n uint64) {
	for _, ch := range changes {
		if ch.gap != skipped {
			break
		}
		n++
	}
	return n
}

// addGap appends a gap with its number of changes. One without changes that skips no version tells
// nothing.
func (g *generation[T]) addGap(skipped *gap, changes uint64) {
	g.gaps = skipped.to
	if changes == 0 && skipped.to <= skipped.before+1 {
		return
	}
	g.out.begin(gapRecord)
	g.out.number(skipped.before)
	g.out.number(skipped.to)
	g.out.flag(skipped.untold)
	g.out.number(changes)
	g.out.end()
	g.version = max(g.version, skipped.to)
}

func (g *generation[T]) addChange(ch *change[T]) (err error) {
	last := ch.now
	kind := putRecord
	if pointer.None(ch.now) {
		kind = goneRecord
		ch.making.Lock()
		last = ch.gone
		ch.making.Unlock()
	}
	g.out.begin(kind)
	g.out.number(ch.version)
	g.out.number(uint64(ch.bytes))
	if kind == goneRecord {
		g.out.text(ch.old.GetNamespace())
		g.out.text(ch.old.GetName())
		g.out.flag(!pointer.None(last))
	}
	if !pointer.None(last) {
		err = g.codec.append(&g.out, last)
	}
	g.out.end()
	g.version = max(g.version, ch.version)
	return err
}

// flushLong is flush once that is worth it.
func (g *generation[T]) flushLong() error {
	if len(g.out.bytes) < journalChunk {
		return nil
	}
	return g.flush()
}

// flush writes the records that are still to be written.
func (g *generation[T]) flush() error {
	if len(g.out.bytes) == 0 {
		return nil
	}
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
	b.floor, b.complete, b.begun = w.floor, w.complete, w.cleared
	b.next, b.version = w.Next(), c.contentVersion()
	b.content = view[T]{present: c.present(), undo: map[objectKey]T{}}
	whole := map[*gap]bool{}
	for number := w.First(); number < b.next; number++ {
		ch := w.At(number)
		if b.complete == math.MaxUint64 {
			// A gap of which changes have been dropped tells nothing: its versions are not known.
			b.floor, b.complete = ch.version, ch.complete
			continue
		}
		whole[ch.gap] = true
		b.changes = append(b.changes, ch)
	}
	for _, skipped := range w.gaps {
		if skipped.to > b.floor || whole[skipped] {
			b.gaps = append(b.gaps, skipped)
		}
	}
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
		if written++; written%followEvery > 0 {
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
	g.out.bytes = append(g.out.bytes, journalMagic...)
	b.of, b.identity = j.codec.of(), j.identity
	for range b.each {
		b.objects++
	}
	b.head.append(&g.out)
	for obj := range b.each {
		g.out.begin(objectRecord)
		err := j.codec.append(&g.out, obj)
		g.out.end()
		if err == nil {
			err = pass()
		}
		if err != nil {
			return err
		}
	}
	g.version = b.floor
	return g.tell(b.news, pass)
}

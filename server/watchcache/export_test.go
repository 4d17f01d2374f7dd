package watchcache

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/store"
)

// RequestOf is the request of options.
var RequestOf = requestOf

// Poll is Next without the wait, for tests that step.
func (w *Watcher[T]) Poll(ctx context.Context, ready func()) (events []Delivery[T], waits bool, err error) {
	return w.poll(ctx, ready)
}

// Held is what a cache has for its watchers.
type Held struct {
	Triggers, Members, Backlogged, Window int
	Bytes, Encoded                        int64
	Noted                                 int   // lanes in the lists of the window's changes
	Kept                                  int64 // bytes that the backlog counts
	Listed                                int   // changes for which the lists of lanes have room
}

// FewNoted is the number of lanes of the past that a change may have in its list.
const FewNoted = fewNoted

// ListedWeight is what such a list takes for a change, in bytes.
const ListedWeight = listedWeight

// HeldBy looks at a cache that nobody is writing to.
func HeldBy[T store.Object](c *Cache[T]) (h Held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.Triggers = len(c.dispatch.triggers) + len(c.dispatch.labels)
	c.dispatch.each(func(l *lane[T]) {
		h.Members += l.readers
		if room := cap(l.changes); room > len(l.few) {
			h.Listed += room
		}
	})
	h.Backlogged, h.Kept = int(c.window.backlog.held.Load()), c.window.backlog.used.Load()
	h.Window, h.Bytes = c.window.Len(), c.window.bytes
	for n := c.window.First(); n < c.window.Next(); n++ {
		h.Noted += len(c.window.At(n).histories)
	}
	c.encodings.mu.Lock()
	defer c.encodings.mu.Unlock()
	h.Encoded = c.encodings.total
	return h
}

// Step writes what the journal lacks, as its Run does, and begins the file anew when the changes
// are longer than least bytes and than the content. It does not wait after a failure.
func (j *Journal[T]) Step(ctx context.Context, least int64) {
	j.least, j.again = least, time.Time{}
	j.write(ctx, false)
	if j.writes == nil {
		j.again = time.Time{}
		j.write(ctx, false)
	}
	j.show(klog.FromContext(ctx))
}

// Abandon closes the files of a journal that Step has written, as the end of a process does.
func (j *Journal[T]) Abandon() { j.close() }

// Floor is the oldest version that a watch may begin at.
func (c *Cache[T]) Floor() uint64 { return c.floor() }

// Seal gives the blocks of a journal the checksums that they should have, so that a fuzzer comes to
// their content.
func Seal(file []byte) []byte {
	file = bytes.Clone(file)
	for at := len(journalMagic); at+blockHeader <= len(file); {
		header, rest := file[at:], file[at+blockHeader:]
		length := int(binary.BigEndian.Uint32(header)) % (len(rest) + 1)
		binary.BigEndian.PutUint32(header, uint32(length))
		binary.BigEndian.PutUint32(header[4:], checksum(header, rest[:length]))
		at += blockHeader + length
	}
	return file
}

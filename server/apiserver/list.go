package apiserver

import (
	"bufio"
	"io"
	"net/http"
	"sync"

	"github.com/tributary-go/tributary/server/watchcache"
)

// serveList answers with a list, written object by object.
func (e *resourceEndpoint[T]) serveList(c call, r watchcache.Request) error {
	page, err := e.cache.Page(c.request.Context(), r)
	if err != nil {
		return err
	}
	return e.respondList(c, page)
}

// respondList writes a list.
func (e *resourceEndpoint[T]) respondList(c call, page watchcache.Page[T]) error {
	if err := c.request.Context().Err(); err != nil {
		return err
	}
	if c.as == oneMetadata {
		return notAcceptable("you requested PartialObjectMetadata, but the requested object is a list")
	}
	c.Header().Set("Content-Type", c.format.contentType(false))
	c.Header().Set("Cache-Control", "no-cache, private")
	w := bufio.NewWriterSize(c, writeBuffer)
	l := e.codec.list(c.format, page)
	if zip, ok := c.ResponseWriter.(*compressor); ok && l.isLong() {
		l.zip = zip
	}
	err := c.format.list(w, l)
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		// The status has been sent: a connection that breaks off is all that is left to say that
		// this is no list.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// write writes the items, with a separator before each but the first, and returns their length.
// Runs of items are compressed once for all lists that show them.
func (l list) write(w *bufio.Writer, separator string) (written int, err error) {
	own := texts.Get().(*[]byte) // given back if all has been written: see bursts
	for i := 0; i < l.size; {
		if end, ok := l.runFrom(i); ok && l.zip.zip != nil {
			p, err := l.pieceOf(i, end, separator)
			if err == nil {
				err = w.Flush()
			}
			if err == nil {
				err = l.zip.zip.writePiece(p)
			}
			if err != nil {
				return written, err
			}
			written, i = written+p.size, end
			continue
		}
		if i > 0 {
			_, _ = w.WriteString(separator) // a bufio.Writer keeps its error
		}
		doc, err := l.items.Shared(i)
		if doc == nil && err == nil {
			*own, err = l.append((*own)[:0], i)
			doc = *own
		}
		if err == nil {
			_, err = w.Write(doc)
		}
		if err != nil {
			return written, err
		}
		written, i = written+len(doc), i+1
	}
	texts.Put(own)
	return written, nil
}

// isLong reports whether a list will most likely be compressed, judging by its first item.
func (l list) isLong() bool {
	if l.size == 0 {
		return false
	}
	first, err := l.items.Bytes(0)
	return err == nil && len(first)*l.size >= 2*compressFrom
}

// runFrom is the end of the run that begins with an item, if the list is compressed. The first item
// has no separator, and so no run.
func (l list) runFrom(i int) (end int, ok bool) {
	if i == 0 || l.zip == nil {
		return 0, false
	}
	return l.items.Run(i)
}

// deflatedRun is the form of pieces.
type deflatedRun struct{}

// texts have room for an item that is written, or compressed, and then forgotten. Without them, a
// list of 10,000 pods in JSON would leave 122 MB to the collector.
var texts = sync.Pool{New: func() any { return new([]byte) }}

// pieceOf compresses a run, with a separator before each item.
func (l list) pieceOf(i, end int, separator string) (*piece, error) {
	p, err := l.items.OfRun(i, end, deflatedRun{}, func() (any, int64, error) {
		p, err := newPiece(func(w io.Writer) (err error) {
			text := texts.Get().(*[]byte)
			defer texts.Put(text)
			for ; i < end && err == nil; i++ {
				*text, err = l.append(append((*text)[:0], separator...), i)
				_, _ = w.Write(*text) // into memory
			}
			return err
		})
		if err != nil {
			return nil, 0, err
		}
		return p, int64(cap(p.deflated)), nil
	})
	if err != nil {
		return nil, err
	}
	return p.(*piece), nil
}

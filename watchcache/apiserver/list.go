package apiserver

import (
	"bufio"
	"net/http"

	"github.com/tributary-go/tributary/watchcache"
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
	c.Header().Set("Content-Type", c.format.contentType(false))
	c.Header().Set("Cache-Control", "no-cache, private")
	w := bufio.NewWriterSize(c, writeBuffer)
	err := c.format.list(w, e.codec.list(c.format, page))
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

// writeBuffer holds what is written before the connection sees it.
const writeBuffer = 32 << 10

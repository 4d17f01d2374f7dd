package apiserver

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
)

// compressFrom is the least number of bytes that are worth compressing, as in the API server.
const compressFrom = 128 << 10

// compressor holds back an answer until it is long enough to be compressed. An answer that is
// flushed before, such as a watch, is not compressed.
type compressor struct {
	http.ResponseWriter
	code int
	held *bytes.Buffer // nil until there is something, and once it has been decided
	zip  *gzipStream   // nil if the answer is not compressed
	done bool          // it has been decided
}

var holds = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// acceptsGzip reports whether the answer to a request may be compressed.
func acceptsGzip(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	for _, coding := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		if strings.TrimSpace(coding) == "gzip" {
			return true
		}
	}
	return false
}

// Unwrap is for http.ResponseController.
func (c *compressor) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// WriteHeader keeps the code until it is decided how the answer is written.
func (c *compressor) WriteHeader(code int) {
	if c.code == 0 {
		c.code = code
	}
}

// Write holds back less than compressFrom bytes.
func (c *compressor) Write(p []byte) (int, error) {
	switch {
	case c.zip != nil:
		return c.zip.Write(p)
	case c.done:
		return c.ResponseWriter.Write(p)
	}
	if c.held == nil {
		c.held = holds.Get().(*bytes.Buffer)
	}
	n, _ := c.held.Write(p) // a bytes.Buffer takes everything
	if c.held.Len() < compressFrom {
		return n, nil
	}
	c.Header().Set("Content-Encoding", "gzip")
	c.Header().Add("Vary", "Accept-Encoding")
	return n, c.decide(true)
}

// decide sends the header and the bytes that were held back.
func (c *compressor) decide(compress bool) (err error) {
	if c.done {
		return nil
	}
	c.done = true
	if c.code != 0 {
		c.ResponseWriter.WriteHeader(c.code)
	}
	if compress {
		c.zip = newGzipStream(c.ResponseWriter)
	}
	if c.held == nil {
		return nil
	}
	if c.zip != nil {
		_, err = c.zip.Write(c.held.Bytes())
	} else {
		_, err = c.ResponseWriter.Write(c.held.Bytes())
	}
	if err == nil { // see bursts
		c.held.Reset()
		holds.Put(c.held)
	}
	c.held = nil
	return err
}

// FlushError sends all bytes so far.
func (c *compressor) FlushError() error {
	if err := c.decide(false); err != nil {
		return err
	}
	if c.zip != nil {
		if err := c.zip.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// finish ends a whole answer. An answer that broke off must not be finished: its client would take
// it for whole.
func (c *compressor) finish() {
	_ = c.decide(false) // the client has gone, and cannot be told
	if c.zip != nil {
		_ = c.zip.Close()
	}
}

package listwatchtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// memory is the door in memory: an [http.RoundTripper] with one server goroutine per request. It
// ends before the body's Close returns, or before RoundTrip does if there is no answer.
type memory struct{ server *Server }

// RoundTrip implements [http.RoundTripper].
func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body, pipe := io.Pipe()
	w := &memoryWriter{header: http.Header{}, pipe: pipe, ready: make(chan struct{}), done: make(chan struct{})}
	go w.serve(m.server, incoming(ctx, r))
	giveUp := func(err error) (*http.Response, error) {
		cancel()
		_ = body.Close() // an answer that begins at this moment would wait for its reader
		<-w.done
		return nil, err
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
		return giveUp(context.Cause(ctx))
	}
	if w.failure != nil {
		return giveUp(w.failure)
	}
	unhook := context.AfterFunc(ctx, func() { pipe.CloseWithError(context.Cause(ctx)) })
	return &http.Response{
		StatusCode: w.code, Status: fmt.Sprintf("%d %s", w.code, http.StatusText(w.code)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, ContentLength: -1, Request: r,
		Body: &memoryBody{PipeReader: body, close: func() {
			unhook()
			cancel()
			_ = body.Close()
			<-w.done
		}},
	}, nil
}

func incoming(ctx context.Context, r *http.Request) *http.Request {
	in := r.Clone(ctx)
	in.RequestURI = r.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	return in
}

// memoryBody is the client's end of an answer.
type memoryBody struct {
	*io.PipeReader
	close func()
}

// Close ends the exchange and waits for the server's goroutine.
func (b *memoryBody) Close() error {
	b.close()
	return nil
}

// memoryWriter is the server's end of an answer. It has no buffer: a Write returns when the client
// has read it.
type memoryWriter struct {
	header http.Header
	pipe   *io.PipeWriter
	done   chan struct{} // closes when the handler has returned

	ready   chan struct{} // closes when the fields below are set
	begun   bool
	code    int
	sent    http.Header
	failure error // instead of an answer
}

func (w *memoryWriter) serve(handler http.Handler, r *http.Request) {
	defer close(w.done)
	defer r.Body.Close()
	defer func() {
		switch cause := recover(); cause {
		case nil:
			w.WriteHeader(http.StatusOK)
			_ = w.pipe.Close()
		case http.ErrAbortHandler: // the reader of a broken connection sees these errors
			w.fail(io.EOF)
			w.pipe.CloseWithError(io.ErrUnexpectedEOF)
		default:
			panic(cause)
		}
	}()
	handler.ServeHTTP(w, r)
}

// fail ends an exchange without an answer.
func (w *memoryWriter) fail(err error) {
	if !w.begun {
		w.begun, w.failure = true, err
		close(w.ready)
	}
}

// Header implements [http.ResponseWriter].
func (w *memoryWriter) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *memoryWriter) WriteHeader(code int) {
	if !w.begun {
		w.begun, w.code, w.sent = true, code, w.header.Clone()
		close(w.ready)
	}
}

// Write implements [http.ResponseWriter].
func (w *memoryWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// Flush implements [http.Flusher]. Nothing is buffered, so it only sends the header.
func (w *memoryWriter) Flush() { w.WriteHeader(http.StatusOK) }

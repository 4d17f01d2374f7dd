package listwatchtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// memory is the door in memory: an [http.RoundTripper] that calls the server in a goroutine per request. That ends with
// the request: when the body of the answer is closed, which waits for it, or when the answer never comes to be.
type memory struct{ server *Server }

// RoundTrip implements [http.RoundTripper].
func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body, pipe := io.Pipe()
	w := &memoryWriter{header: http.Header{}, pipe: pipe, ready: make(chan struct{}), done: make(chan struct{})}
	go w.serve(m.server, incoming(ctx, r))
	giveUp := func(err error) (*http.Response, error) {
		cancel()
		_ = body.Close() // which an answer in that very moment would wait for
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

// incoming is a request as a server sees it.
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

// Close ends the exchange and waits until the server has noticed.
func (b *memoryBody) Close() error {
	b.close()
	return nil
}

// memoryWriter is the server's end of an answer. There is no buffer: a Write returns when the client has read it.
type memoryWriter struct {
	header http.Header
	pipe   *io.PipeWriter
	done   chan struct{} // closes when the server is through

	ready   chan struct{} // closes when what follows is known
	begun   bool
	code    int
	sent    http.Header
	failure error // in place of an answer
}

func (w *memoryWriter) serve(handler http.Handler, r *http.Request) {
	defer close(w.done)
	defer r.Body.Close()
	defer func() {
		switch cause := recover(); cause {
		case nil:
			w.WriteHeader(http.StatusOK)
			_ = w.pipe.Close()
		case http.ErrAbortHandler: // what a connection that breaks off looks like to its reader
			w.fail(io.EOF)
			w.pipe.CloseWithError(io.ErrUnexpectedEOF)
		default:
			panic(cause)
		}
	}()
	handler.ServeHTTP(w, r)
}

// fail ends an exchange in which nothing has been answered.
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

// Flush implements [http.Flusher]: nothing is held back.
func (w *memoryWriter) Flush() { w.WriteHeader(http.StatusOK) }

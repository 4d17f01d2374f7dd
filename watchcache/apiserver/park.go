package apiserver

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
)

// ParkIdleWatches has an idle watch over HTTP/1.1 keep its connection and its place in the cache,
// and neither a goroutine nor a buffer. The server takes the connection from the http.Server, whose
// timeouts no longer apply, and whose Shutdown does not wait for the watch: [Server.Shutdown] does.
// A client that has gone is noticed by the next event, or within ten seconds. The connection closes
// after the watch.
//
// Watches over TLS, HTTP/2 and web sockets are served as without. A connection that a listener has
// wrapped costs a goroutine, and so does every connection on a system that is no Unix.
func ParkIdleWatches() ServeOption { return func(s *serving) { s.park = true } }

// parkedWatch is a watch that runs while there are events. It is the sink of its stream.
type parkedWatch[T store.Object] struct {
	eventStream[T]
	watcher    *watchcache.Watcher[T]
	connection net.Conn
	raw        syscall.RawConn // nil: not probed
	broken     bool            // a write has failed
	ctx        context.Context
	stop       context.CancelFunc
	resume     func() // runs it
	among      *parkedWatches
	log        *log.Logger
}

// park takes over a watch that has just begun, with its connection. It is false, and nothing has
// happened, if the watch cannot be parked. It ends with ended.
func park[T store.Object](c call, ended context.Context, stream eventStream[T], w *watchcache.Watcher[T]) bool {
	r, among := c.request, &c.server.parked
	if r.ProtoMajor != 1 || r.ProtoMinor == 0 || r.TLS != nil || isWebSocket(r) || !among.enter() {
		return false
	}
	connection, _, err := http.NewResponseController(c.ResponseWriter).Hijack()
	if err != nil {
		among.leave(nil)
		return false
	}
	_ = connection.SetDeadline(time.Time{}) // fails on a closed connection, as the first write will
	p := &parkedWatch[T]{
		eventStream: stream, watcher: w, connection: connection, among: among, log: log.Default(),
	}
	p.to = p
	p.ctx, p.stop = context.WithCancel(ended)
	p.resume = func() { go p.run() }
	if web, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && web.ErrorLog != nil {
		p.log = web.ErrorLog
	}
	go p.begin(p.head(c.Header()))
	return true
}

// head is the head of the answer, with the header that is set already.
func (p *parkedWatch[T]) head(header http.Header) []byte {
	header.Set("Content-Type", p.format.contentType(true))
	header.Set("Cache-Control", "no-cache, private")
	header.Set("Connection", "close")
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	header.Set("Transfer-Encoding", "chunked")
	head := bytes.NewBufferString("HTTP/1.1 200 OK\r\n")
	_ = header.Write(head) // a bytes.Buffer takes everything
	head.WriteString("\r\n")
	return head.Bytes()
}

// begin writes the head, and watches over the client.
func (p *parkedWatch[T]) begin(head []byte) {
	_ = p.writeAll(net.Buffers{head})
	if p.raw = rawConnection(p.connection); p.raw != nil {
		p.among.add(p)
	} else {
		go func() {
			_, _ = io.Copy(io.Discard, p.connection) // until the client or p closes it
			p.stop()
		}()
	}
	p.run()
}

// run sends what the watcher sees, until it has seen all: then the goroutine ends.
func (p *parkedWatch[T]) run() {
	defer func() {
		if problem := recover(); problem != nil { // net/http does the same for a handler
			p.log.Printf("apiserver: panic in a watch for %v: %v\n%s", p.connection.RemoteAddr(), problem, debug.Stack())
			p.broken = true
			p.end()
		}
	}()
	for !p.broken {
		events, waits, err := p.watcher.Poll(p.ctx, p.resume)
		switch {
		case waits:
			return // p may be running again already
		case err != nil:
			p.fail(err)
		case len(events) > 0 && p.send(events) == nil:
			continue
		}
		break
	}
	p.end()
}

// end is called once, by the last run.
func (p *parkedWatch[T]) end() {
	p.watcher.Close()
	if !p.broken {
		_ = p.writeAll(net.Buffers{[]byte("0\r\n\r\n")})
	}
	_ = p.connection.Close() // it has been read by the client, or never will
	p.stop()
	p.among.leave(p)
}

// write implements [sink]: a batch is one chunk, and one system call as far as the client's window
// lets it.
func (p *parkedWatch[T]) write(frames [][]byte) error {
	size := 0
	for _, frame := range frames {
		size += len(frame)
	}
	if size == 0 {
		return nil // an empty chunk would be the end
	}
	chunk := make(net.Buffers, 0, len(frames)+2)
	chunk = append(chunk, append(strconv.AppendInt(nil, int64(size), 16), "\r\n"...))
	return p.writeAll(append(append(chunk, frames...), []byte("\r\n")))
}

// writeAll writes to a client that may be slow, but not for ever.
func (p *parkedWatch[T]) writeAll(parts net.Buffers) error {
	_ = p.connection.SetWriteDeadline(time.Now().Add(writePatience))
	_, err := parts.WriteTo(p.connection)
	p.broken = p.broken || err != nil
	return err
}

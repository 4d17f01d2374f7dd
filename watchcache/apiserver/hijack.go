package apiserver

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
)

// parkConnection takes over a watch over HTTP/1.1 that has just begun, with its connection. It is
// false, and nothing has happened, if the watch cannot be parked. It ends with ended.
func parkConnection[T store.Object](c call, ended context.Context, stream eventStream[T], w *watchcache.Watcher[T]) bool {
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
	endSilence(connection)
	p := newParkedWatch(c, ended, stream, w)
	p.carrier = &chunks{connection}
	go p.begin(connection, headOf(c.Header(), stream.format.contentType(true)))
	return true
}

// headOf is the head of the answer, with the header that is set already.
func headOf(header http.Header, contentType string) []byte {
	header.Set("Content-Type", contentType)
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
func (p *parkedWatch[T]) begin(connection net.Conn, head []byte) {
	err := (&chunks{connection}).writeAll(net.Buffers{head})
	p.broken, p.unread = err != nil, tooSlow(err)
	if p.raw = rawConnection(connection); p.raw != nil {
		p.among.add(p)
	} else {
		go func() {
			_, _ = io.Copy(io.Discard, connection) // until the client or p closes it
			p.stop()
		}()
	}
	p.run()
}

// chunks are the answer of a parked watch that has a connection of its own.
type chunks struct{ connection net.Conn }

// write implements [sink]: a batch is one chunk, and one system call as far as the client's window
// lets it.
func (c *chunks) write(frames [][]byte) error {
	size := 0
	for _, frame := range frames {
		size += len(frame)
	}
	if size == 0 {
		return nil // an empty chunk would be the end
	}
	chunk := make(net.Buffers, 0, len(frames)+2)
	chunk = append(chunk, append(strconv.AppendInt(nil, int64(size), 16), "\r\n"...))
	return c.writeAll(append(append(chunk, frames...), []byte("\r\n")))
}

// writeAll writes to a client that may be slow, but not for ever.
func (c *chunks) writeAll(parts net.Buffers) error {
	_ = c.connection.SetWriteDeadline(time.Now().Add(writePatience))
	_, err := parts.WriteTo(c.connection)
	return err
}

func (c *chunks) end(whole bool) {
	if whole {
		_ = c.writeAll(net.Buffers{[]byte("0\r\n\r\n")})
	}
	_ = c.connection.Close() // it has been read by the client, or never will
}

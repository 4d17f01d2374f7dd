package apiserver

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// hijacked is a connection of HTTP/1.1 that was taken from the http.Server, for one answer in
// chunks.
type hijacked struct {
	connection net.Conn
	raw        syscall.RawConn    // nil if it cannot be probed
	hangUp     context.CancelFunc // ends the watch
	broken     bool               // a write has failed
	unread     bool               // because the client is too slow
}

// take sets the connection up.
func (h *hijacked) take(connection net.Conn) {
	h.connection, h.raw = connection, rawConnection(connection)
	_ = connection.SetDeadline(time.Time{}) // fails on a closed connection, as the first write will
	endSilence(connection, h.raw)
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

// write implements [sink]: a batch is one chunk, and one system call as far as the client's window
// lets it.
func (h *hijacked) write(frames [][]byte) error {
	size := 0
	for _, frame := range frames {
		size += len(frame)
	}
	if size == 0 {
		return nil // an empty chunk would be the end
	}
	chunk := make(net.Buffers, 0, len(frames)+2)
	chunk = append(chunk, append(strconv.AppendInt(nil, int64(size), 16), "\r\n"...))
	return h.writeAll(append(append(chunk, frames...), []byte("\r\n")))
}

// writeAll writes to a client that may be slow, but not for ever.
func (h *hijacked) writeAll(parts net.Buffers) error {
	_ = h.connection.SetWriteDeadline(time.Now().Add(writePatience))
	_, err := parts.WriteTo(h.connection)
	h.broken, h.unread = h.broken || err != nil, h.unread || tooSlow(err)
	return err
}

// close ends the answer, properly if all of it has been written.
func (h *hijacked) close() {
	if !h.broken {
		_ = h.writeAll(net.Buffers{[]byte("0\r\n\r\n")})
	}
	_ = h.connection.Close() // it has been read by the client, or never will
	h.hangUp()
}

// hangUpAtItsEnd reads a connection that cannot be probed, until either side closes it.
func (h *hijacked) hangUpAtItsEnd() {
	_, _ = io.Copy(io.Discard, h.connection)
	h.hangUp()
}

package apiserver

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/websocket"
)

// isWebSocket reports whether a client asks for a web socket, as browsers do.
func isWebSocket(r *http.Request) bool {
	return r.ProtoMajor == 1 && strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		strings.Contains(strings.ToLower(r.Header.Get("Connection")), "upgrade")
}

// overWebSocket calls serve with a web socket, in which the frame of each write is a message: text
// for JSON, bytes for protobuf. The context ends with the client; its messages are ignored. As on
// the API server, a request without an Origin is refused.
func (c call) overWebSocket(ctx context.Context, serve func(ctx context.Context, w io.Writer)) {
	websocket.Handler(func(conn *websocket.Conn) {
		to := messages{Conn: conn}
		if c.format.encoding == (protobufEncoding{}) {
			conn.PayloadType, to.head = websocket.BinaryFrame, 4
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		// A server that closes ends a client that does not read.
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		var reading sync.WaitGroup
		reading.Go(func() {
			_, _ = io.Copy(io.Discard, conn)
			cancel()
		})
		defer func() { // the end of the connection ends the reader
			_ = conn.SetWriteDeadline(time.Now().Add(writePatience))
			_ = conn.Close()
			reading.Wait()
		}()
		serve(ctx, to)
	}).ServeHTTP(hijacker{c.ResponseWriter}, c.request)
}

// messages writes frames to a client that may be slow, but not for ever.
type messages struct {
	*websocket.Conn
	head int // of a frame: its length, which a message has already
}

func (m messages) Write(frame []byte) (int, error) {
	_ = m.SetWriteDeadline(time.Now().Add(writePatience))
	return m.Conn.Write(frame[m.head:])
}

// hijacker finds the connection below the writers around it.
type hijacker struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

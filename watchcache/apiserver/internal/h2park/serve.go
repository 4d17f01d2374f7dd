package h2park

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
)

// unencrypted is where net/http and x/net/http2 hand over connections without TLS.
const unencrypted = "unencrypted_http2"

// options of a connection.
type options struct {
	patience   time.Duration
	idle       time.Duration // until a connection without streams ends; 0: never
	sawPreface bool
}

// Configure has a server serve HTTP/2 over connections whose streams can be parked. A client that
// takes nothing for as long as patience loses the stream, or the connection. Timeouts, TLSConfig
// and ConnState of the server are set before.
func Configure(web *http.Server, patience time.Duration) error {
	idle := cmp.Or(web.IdleTimeout, web.ReadTimeout)
	h2 := &http2.Server{
		IdleTimeout:      -1,           // the server does not see who is parked: it is for us to tell
		MaxReadFrameSize: initialFrame, // frames of ours wait for the end of one of the client
	}
	if err := http2.ConfigureServer(web, h2); err != nil {
		return err
	}
	if told := web.ConnState; told != nil {
		web.ConnState = func(connection net.Conn, state http.ConnState) { told(original(connection), state) }
	}
	web.TLSNextProto[http2.NextProtoTLS] = func(web *http.Server, connection *tls.Conn, handler http.Handler) {
		c := newConn(connection, options{patience: patience, idle: idle})
		c.serve(h2, overTLS{c, connection}, &http2.ServeConnOpts{BaseConfig: web, Handler: handler})
	}
	web.TLSNextProto[unencrypted] = func(web *http.Server, connection *tls.Conn, handler http.Handler) {
		plain, ok := connection.NetConn().(interface{ UnencryptedNetConn() net.Conn })
		if !ok { // a mistake of the server
			_ = connection.Close()
			return
		}
		c := newConn(plain.UnencryptedNetConn(), options{patience: patience, idle: idle, sawPreface: true})
		c.serve(h2, c, &http2.ServeConnOpts{BaseConfig: web, Handler: handler, SawClientPreface: true})
	}
	return nil
}

// overTLS has the server see how the connection is encrypted.
type overTLS struct {
	*conn
	encrypted *tls.Conn
}

// ConnectionState is what x/net looks for.
func (o overTLS) ConnectionState() tls.ConnectionState { return o.encrypted.ConnectionState() }

// original is the connection that net/http knows.
func original(connection net.Conn) net.Conn {
	switch c := connection.(type) {
	case *conn:
		return c.Conn
	case overTLS:
		return c.Conn
	}
	return connection
}

// serve returns when the connection has ended, for the server and for all parked streams.
func (c *conn) serve(h2 *http2.Server, seen net.Conn, o *http2.ServeConnOpts) {
	if based, ok := o.Handler.(interface{ BaseContext() context.Context }); ok {
		o.Context = based.BaseContext() // as x/net does
	}
	o.Handler = marked{c, o.Handler}
	pumped := make(chan struct{})
	go func() {
		defer close(pumped)
		c.pump()
	}()
	h2.ServeConn(seen, o)
	<-pumped
}

// fieldName is the field of a request that names its stream.
const fieldName = "tributary-stream"

var fieldKey = http.CanonicalHeaderKey(fieldName)

// marked is a handler whose requests know their streams.
type marked struct {
	*conn
	handler http.Handler
}

type streamKey struct{}

// ServeHTTP takes the field out of the request that fieldFor has put into it.
func (m marked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fields := r.Header[fieldKey]
	if len(fields) == 0 {
		m.handler.ServeHTTP(w, r)
		return
	}
	delete(r.Header, fieldKey)
	if s := m.named(fields[len(fields)-1]); s != nil {
		s.writer = w
		r = r.WithContext(context.WithValue(r.Context(), streamKey{}, s))
	}
	m.handler.ServeHTTP(w, r)
}

// named is the stream that a field names, unless a client has made it up.
func (c *conn) named(field string) *Stream {
	text, ours := strings.CutPrefix(field, c.secret)
	id, err := strconv.ParseUint(text, 10, 31)
	if !ours || err != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[uint32(id)]
}

// Of is the stream of a request, or nil if it cannot be parked: it is not of a server that was
// configured here, or what its handler writes is changed on the way by a writer without Unwrap.
func Of(w http.ResponseWriter, r *http.Request) *Stream {
	s, _ := r.Context().Value(streamKey{}).(*Stream)
	if s == nil {
		return nil
	}
	for {
		if w == s.writer {
			return s
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = inner.Unwrap()
	}
}

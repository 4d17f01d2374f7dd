package apiserver

import (
	"context"
	"log"
	"net/http"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver/internal/h2park"
)

// ParkIdleWatches has an idle watch keep its connection and its place in the cache, and neither a
// goroutine nor a buffer. The server takes the watch from the http.Server, whose timeouts no longer
// apply: [Server.Shutdown] waits for it.
//
// Over HTTP/1.1 that is the whole connection, which closes after the watch, and for which the
// http.Server's Shutdown does not wait. A client that has closed its connection is noticed within
// ten seconds. A client that has vanished without a word, such as a machine without power, is
// noticed within 40 seconds: TCP gives it up after 30 without an answer
// (TestASilentClientIsGivenUp). If the last event is unanswered, systems other than Linux may take
// minutes, as TCP there repeats it. A connection that a listener has wrapped costs a goroutine, and
// so does every connection on a system that is no Unix. Over HTTP/2 it is the stream, if
// [ConfigureHTTP2] has prepared the http.Server, the client's window for the connection is 256 KB
// or more, as that of Go's clients, and no handler in between has wrapped the writer without an
// Unwrap method.
//
// Web sockets, and watches of HTTP/1.1 over TLS, are served as without.
func ParkIdleWatches() ServeOption { return func(s *serving) { s.park = true } }

// ConfigureHTTP2 has an http.Server serve HTTP/2 so that [ParkIdleWatches] works there, too. All
// else is as it was: golang.org/x/net/http2 serves. Call it before the server begins, and after its
// timeouts, TLSConfig and ConnState are set.
func ConfigureHTTP2(web *http.Server) error { return h2park.Configure(web, writePatience) }

// carrier takes what a parked watch sends to its client.
type carrier interface {
	sink
	// end is called once, after the last write. whole says that the answer is complete.
	end(whole bool)
}

// parkedWatch is a watch that runs while there are events, or one that is to become so.
type parkedWatch[T store.Object] struct {
	eventStream[T]
	watcher *watchcache.Watcher[T]
	carrier carrier
	raw     syscall.RawConn // nil: not probed
	broken  bool            // a write has failed
	unread  bool            // because the client is too slow
	ctx     context.Context
	stop    context.CancelFunc
	ready   func() // resume, made once
	among   *parkedWatches
	log     *log.Logger
	client  string // its address, for log

	mu      sync.Mutex
	handler chan struct{} // guarded by mu: closed to wake its handler; nil if there is none
}

// newParkedWatch makes a watch that ends with ended. Its carrier is still to be set.
func newParkedWatch[T store.Object](c call, ended context.Context, stream eventStream[T], w *watchcache.Watcher[T]) *parkedWatch[T] {
	p := &parkedWatch[T]{
		eventStream: stream, watcher: w, among: &c.server.parked, log: log.Default(), client: c.request.RemoteAddr,
	}
	p.to = p
	p.ctx, p.stop = context.WithCancel(ended)
	p.ready = p.resume
	if web, ok := c.request.Context().Value(http.ServerContextKey).(*http.Server); ok && web.ErrorLog != nil {
		p.log = web.ErrorLog
	}
	return p
}

// resume has a watch that waits go on.
func (p *parkedWatch[T]) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handler != nil {
		close(p.handler)
		return
	}
	go p.run()
}

// run is a goroutine that ends when all has been sent.
func (p *parkedWatch[T]) run() {
	defer func() {
		if problem := recover(); problem != nil { // net/http does the same for a handler
			p.log.Printf("apiserver: panic in a watch for %v: %v\n%s", p.client, problem, debug.Stack())
			p.broken = true
			p.end()
		}
	}()
	if !p.sendAll() {
		p.end()
	}
}

// sendAll sends what the watcher sees, until it has seen all: then it waits, and the watch may be
// running again already. Otherwise it is over.
func (p *parkedWatch[T]) sendAll() (waits bool) {
	for !p.broken {
		events, waits, err := p.watcher.Poll(p.ctx, p.ready)
		switch {
		case waits:
			return true
		case err != nil:
			p.fail(err)
		case len(events) > 0:
			if err := p.send(events); err == nil {
				continue
			} else if tooSlow(err) {
				p.unread = true
			}
		}
		break
	}
	return false
}

// end is called once, by the last run.
func (p *parkedWatch[T]) end() {
	p.closeWatcher()
	p.carrier.end(!p.broken)
	p.stop()
	p.among.leave(p)
}

func (p *parkedWatch[T]) closeWatcher() {
	if p.unread {
		p.watcher.CountUnread()
	}
	p.watcher.Close()
}

// write implements [sink].
func (p *parkedWatch[T]) write(frames [][]byte) error {
	err := p.carrier.write(frames)
	p.broken = p.broken || err != nil
	return err
}

package apiserver

import (
	"context"
	"log"
	"net"
	"net/http"
	"runtime/debug"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// ParkIdleWatches has an idle watch over HTTP/1.1 keep its connection and its place in the cache,
// and neither a goroutine nor a buffer. The server takes the connection from the http.Server. The
// timeouts and the Shutdown of that no longer apply: [Server.Shutdown] waits for the watch. After
// the watch the connection closes. A handler around the server ends such a watch through [OnPark].
//
// A client that has closed its connection is noticed within ten seconds. A client that has vanished
// without a word, such as a machine without power, is noticed within 40 seconds: TCP gives it up
// after 30 without an answer (TestASilentClientIsGivenUp). If the last event is unanswered, systems
// other than Linux may take minutes, as TCP there repeats it. A connection that a listener has
// wrapped costs a goroutine, and so does every connection on a system that is no Unix.
//
// Watches over HTTP/2 or TLS, and web sockets, are served as without.
func ParkIdleWatches() ServeOption { return func(s *serving) { s.park = true } }

// parkConnection takes over a watch that has just begun, with its connection. It is false, and
// nothing has happened, if the watch cannot be parked. The watch ends with ended.
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
	p := &parkedWatch[T]{eventStream: stream, watcher: w, among: among, log: log.Default(), client: r.RemoteAddr}
	if web, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && web.ErrorLog != nil {
		p.log = web.ErrorLog
	}
	p.ctx, p.hangUp = context.WithCancel(ended)
	p.to, p.ready = &p.hijacked, func() { go p.run() }
	p.take(connection)
	if parking := parkingOf(r.Context()); parking != nil {
		p.left = parking(p.hangUp)
	}
	head := headOf(c.Header(), stream.format.contentType(true))
	go func() {
		_ = p.writeAll(net.Buffers{head}) // run ends a broken watch
		among.watchOver(&p.hijacked)
		p.run()
	}()
	return true
}

// parkedWatch is a watch on a connection of its own. It has a goroutine while there are events.
type parkedWatch[T store.Object] struct {
	eventStream[T]
	hijacked
	watcher *watchcache.Watcher[T]
	ctx     context.Context
	ready   func() // has it run again; made once
	among   *parkedWatches
	log     *log.Logger
	client  string // its address, for log
	left    func() // of OnPark; nil without
}

// run is a goroutine that ends when all has been sent, or with the watch.
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

// sendAll sends the watcher's events, until it has seen all: then it waits, and the watch may be
// running again already. Otherwise the watch is over.
func (p *parkedWatch[T]) sendAll() (waits bool) {
	for !p.broken {
		events, waits, err := p.watcher.Poll(p.ctx, p.ready)
		switch {
		case waits:
			return true
		case err != nil:
			p.fail(err)
		case len(events) == 0:
			p.farewell(p.ctx, p.watcher)
		case p.send(events) == nil:
			continue
		}
		break
	}
	return false
}

// end is called once, by the last run.
func (p *parkedWatch[T]) end() {
	if p.unread {
		p.watcher.CountUnread()
	}
	p.watcher.Close()
	p.close()
	if p.left != nil {
		p.left()
	}
	p.among.leave(&p.hijacked)
}

package apiserver

import (
	"context"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver/internal/h2park"
)

// parkStream prepares a watch over HTTP/2 that has just begun. Its handler gives up its stream when
// it has sent all. It is nil if the watch cannot be parked. It ends with ended.
func parkStream[T store.Object](c call, ended context.Context, stream eventStream[T], w *watchcache.Watcher[T]) func(context.Context) {
	s := h2park.Of(c.ResponseWriter, c.request)
	if s == nil {
		return nil
	}
	p := newParkedWatch(c, ended, stream, w)
	handled := stream.to
	return func(ctx context.Context) {
		p.carrier = handling{handled}
		p.handle(ctx, dataFrames{s})
	}
}

// handle is what a handler does until its watch is parked or over. ctx is that of its request: it
// ends in either case.
func (p *parkedWatch[T]) handle(ctx context.Context, stream dataFrames) {
	parked := false
	defer func() {
		if !parked {
			p.closeWatcher()
			p.stop()
		}
	}()
	for !parked {
		woken := make(chan struct{})
		p.handler = woken
		stay := context.AfterFunc(ctx, p.stop)
		if !p.sendAll() {
			stay()
			return
		}
		if stay() {
			parked = p.leaveTo(stream, woken)
		}
		if !parked {
			stay = context.AfterFunc(ctx, p.stop)
			<-woken
			stay()
		}
	}
}

// leaveTo parks a watch that waits, which woken ends.
func (p *parkedWatch[T]) leaveTo(stream dataFrames, woken chan struct{}) bool {
	if !p.among.enter() {
		return false
	}
	if !stream.Park(woken, p.stop) {
		p.among.leave(nil)
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.carrier, p.handler = stream, nil
	select {
	case <-woken:
		go p.run()
	default:
	}
	return true
}

// handling is the carrier of a watch that is not parked yet: its handler ends it.
type handling struct{ sink }

func (handling) end(bool) {}

// dataFrames are the answer of a parked watch over HTTP/2.
type dataFrames struct{ *h2park.Stream }

func (d dataFrames) write(frames [][]byte) error { return d.Write(frames) }

func (d dataFrames) end(whole bool) {
	if whole {
		d.End()
	} else {
		d.Reset()
	}
}

package apiserver

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tributary-go/tributary/internal/signal"
)

// probeEvery is how often the connections of parked watches are looked at.
const probeEvery = 10 * time.Second

// keepAlive has TCP give up a silent client in 30 seconds. A probe reads nothing from it, as from
// one that lives: a machine that has lost its power says no goodbye.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// endSilence has TCP end a connection if its client does not answer. A failure here leaves the
// connection as its listener has made it.
func endSilence(connection net.Conn, raw syscall.RawConn) {
	if c, ok := connection.(interface {
		SetKeepAliveConfig(net.KeepAliveConfig) error
	}); ok {
		_ = c.SetKeepAliveConfig(keepAlive)
	}
	if raw != nil {
		_ = raw.Control(endUnanswered)
	}
}

// parkedWatches are the watches of a server that nothing but their connection keeps. It ends a
// watch if its client has gone. The zero value is ready.
type parkedWatches struct {
	mu     sync.Mutex // guards the next fields
	count  int        // watches that have entered, and not left
	closed bool
	probed map[*hijacked]struct{} // nil: none since the last time
	timer  *time.Timer            // of the next probe; nil until the first
	left   signal.Signal

	readers sync.WaitGroup // of connections that cannot be probed
}

// enter counts a watch, which leaves later. It is false once wait has been called.
func (w *parkedWatches) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.count++
	}
	return !w.closed
}

// watchOver has a watch that has entered end when its client has gone.
func (w *parkedWatches) watchOver(h *hijacked) {
	if h.raw == nil {
		w.readers.Go(h.hangUpAtItsEnd) // it ends with the connection
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.probed == nil {
		w.probed = map[*hijacked]struct{}{}
		w.timer = time.AfterFunc(probeEvery, w.probeAgain)
	}
	w.probed[h] = struct{}{}
}

// leave takes back enter, and watchOver if it was called.
func (w *parkedWatches) leave(h *hijacked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count--
	delete(w.probed, h)
	w.left.Broadcast()
}

// wait closes the entrance, and waits until all have left. Then neither a timer nor a goroutine is
// left. It returns the error of ctx.
func (w *parkedWatches) wait(ctx context.Context) error {
	for {
		left := w.left.Wait()
		w.mu.Lock()
		w.closed = true
		count := w.count
		if count == 0 && w.timer != nil {
			w.timer.Stop()
		}
		w.mu.Unlock()
		if count == 0 {
			w.readers.Wait()
			return nil
		}
		select {
		case <-left:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// probeAgain probes from time to time, while there is something to probe.
func (w *parkedWatches) probeAgain() {
	w.probe()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.probed) > 0 {
		w.timer.Reset(probeEvery)
	} else {
		w.probed = nil
	}
}

// probe ends the watches of clients that have gone.
func (w *parkedWatches) probe() {
	w.mu.Lock()
	all := slices.Collect(maps.Keys(w.probed))
	w.mu.Unlock()
	var probe connectionProbe
	for _, h := range all {
		if probe.gone(h.raw) {
			h.hangUp()
		}
	}
}

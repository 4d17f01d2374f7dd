package apiserver

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
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
	entrance

	mu     sync.Mutex             // guards the next fields
	probed map[*hijacked]struct{} // nil: none since the last time
	timer  *time.Timer            // of the next probe; nil until the first

	readers sync.WaitGroup // of connections that cannot be probed
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
	delete(w.probed, h)
	w.mu.Unlock()
	w.entrance.leave()
}

// wait is that of the entrance. Without an error, neither a timer nor a goroutine is left.
func (w *parkedWatches) wait(ctx context.Context) error {
	if err := w.entrance.wait(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.readers.Wait()
	return nil
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

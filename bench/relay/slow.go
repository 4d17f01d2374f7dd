package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
)

// slowClient is one that hardly reads.
type slowClient struct {
	name     string
	none     bool
	interval time.Duration // between bytes; 0: none is read
	secure   bool          // over TLS
}

func (c slowClient) String() string {
	if c.secure {
		return c.name + ", HTTP/1.1 with TLS"
	}
	return c.name + ", HTTP/1.1"
}

// measureSlow prints what a client that does not keep up does to the others and to the relay.
func measureSlow(ctx context.Context, s harness.Settings) error {
	table := harness.Table{Lead: "the slow one", Columns: []harness.Column{
		harness.Col("others: p50, p99 ms", "%.2f, %.2f", "p50 p99"),
		harness.Col("RSS MB of the relay before, peak", "%.0f, %.0f", "before.rss/1e6 after.peak/1e6"),
		harness.Col("heap MB before, after", "%.1f, %.1f", "before.heap/1e6 live.heap/1e6"),
		harness.Col("the watch of the slow one has ended", "%.0f", "ended"),
	}}
	table.Begin(fmt.Sprintf("a slow watch of everything beside %d watches of a node, %d writes a second for %d s", full.watchers, full.slowRate, 2*full.seconds))
	for _, secure := range []bool{false, true} {
		for _, c := range []slowClient{
			{name: "none", none: true}, {name: "reads a byte a second", interval: time.Second}, {name: "never reads"},
		} {
			c.secure = secure
			f, err := harness.Repeated(s.Repeat, c, func(c slowClient) (harness.Figures, error) { return c.measure(ctx) })
			if err != nil {
				return err
			}
			table.Row(f, c)
		}
	}
	return nil
}

func (c slowClient) measure(ctx context.Context) (harness.Figures, error) {
	r, err := newRig(ctx, cluster.Size{Pods: 10 * full.watchers, Nodes: full.watchers}, relaying{Plain: !c.secure})
	if err != nil {
		return nil, err
	}
	defer r.stop()
	version, err := r.version(ctx)
	if err != nil {
		return nil, err
	}
	watchers, err := watchAll(ctx, full.watchers, r.relay.URL(), version, false, ofNode)
	if err != nil {
		return nil, err
	}
	defer watchers.close()
	if err := r.write(ctx, full.slowRate, full.slowRate); err != nil { // warm
		return nil, err
	}
	if _, err = r.relay.ask(ctx, harness.Collected); err != nil {
		return nil, err
	}
	before, err := r.relay.ask(ctx, harness.ResetPeak)
	if err != nil {
		return nil, err
	}
	if version, err = r.version(ctx); err != nil {
		return nil, err
	}
	stop, err := c.start(ctx, r.relay.URL(), version)
	if err != nil {
		return nil, err
	}
	began := time.Now().UnixNano()
	if err := r.write(ctx, 2*full.seconds*full.slowRate, full.slowRate); err != nil {
		return nil, err
	}
	time.Sleep(500 * time.Millisecond)
	after, err := r.relay.ask(ctx, harness.AsItIs)
	if err != nil {
		return nil, err
	}
	live, err := r.relay.ask(ctx, harness.Collected)
	if err != nil {
		return nil, err
	}
	ended := 0.0
	if stop() {
		ended = 1
	}
	watchers.close()
	return delays(watchers, nil, began).With("before.", before).With("after.", after).With("live.", live).With("", harness.Figures{"ended": ended}), nil
}

// start begins the watch with a small buffer in the kernel. stop ends it, and reports whether the
// server had.
func (c slowClient) start(ctx context.Context, server, version string) (stop func() (ended bool), err error) {
	if c.none {
		return func() bool { return false }, nil
	}
	at, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.Host)
	if err != nil {
		return nil, err
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		return nil, err
	}
	stream := conn
	if c.secure {
		stream = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/pods?watch=1&timeoutSeconds=3000&resourceVersion="+version, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", harness.Watch)
	r.Header.Set("Authorization", "Bearer slow")
	if err := r.Write(stream); err != nil {
		return nil, err
	}
	var over atomic.Bool
	quit := make(chan struct{})
	go func() {
		for c.interval > 0 {
			select {
			case <-time.After(c.interval):
			case <-quit:
				return
			}
			if _, err := io.ReadFull(stream, make([]byte, 1)); err != nil {
				over.Store(true)
				return
			}
		}
	}()
	return func() bool {
		close(quit)
		// What the kernel holds is read: behind it is the end, if the server has ended the watch.
		_ = stream.SetReadDeadline(time.Now().Add(3 * time.Second))
		_, err := io.Copy(io.Discard, stream)
		var timeout net.Error
		ended := over.Load() || err == nil || !errors.As(err, &timeout) || !timeout.Timeout()
		_ = stream.Close()
		return ended
	}, nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
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
func measureSlow(ctx context.Context, s harness.Settings) {
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
			table.Row(harness.Repeated(s.Repeat, c, func(c slowClient) harness.Figures { return c.measure(ctx) }), c)
		}
	}
}

func (c slowClient) measure(ctx context.Context) harness.Figures {
	r := newRoute(ctx, cluster.Size{Pods: 10 * full.watchers, Nodes: full.watchers}, relaying{Plain: !c.secure})
	defer r.stop()
	watchers := watchAll(ctx, full.watchers, r.relay.URL(), r.version(ctx), false, ofNode)
	defer watchers.close()
	r.write(ctx, full.slowRate, full.slowRate) // warm
	r.relay.Ask(ctx, harness.Collected)
	before := r.relay.Ask(ctx, harness.ResetPeak)
	stop := c.start(ctx, r.relay.URL(), r.version(ctx))
	began := time.Now().UnixNano()
	r.write(ctx, 2*full.seconds*full.slowRate, full.slowRate)
	after, live := r.relay.Ask(ctx, harness.AsItIs), r.relay.Ask(ctx, harness.Collected)
	ended := stop()
	watchers.close()
	return delays(watchers, nil, began).With("before.", before).With("after.", after).With("live.", live).With("", harness.Figures{"ended": ended})
}

// start begins the watch with a small buffer in the kernel. stop ends it, and returns 1 if the
// server had.
func (c slowClient) start(ctx context.Context, server, version string) (stop func() (ended float64)) {
	if c.none {
		return func() float64 { return 0 }
	}
	client := harness.Client(false)
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(16 << 10)
		}
		return conn, err
	}
	body := watch(ctx, client, server, version, "", "slow")
	quit, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			var next <-chan time.Time // never, if none is read
			if c.interval > 0 {
				next = time.After(c.interval)
			}
			select {
			case <-next:
				if _, err := io.ReadFull(body, make([]byte, 1)); err != nil {
					return
				}
			case <-quit:
				// What the kernel holds is read: behind it is the end, if the server has ended the
				// watch.
				_, _ = io.Copy(io.Discard, body)
				return
			}
		}
	}()
	return func() float64 {
		defer body.Close()
		close(quit)
		select {
		case <-over:
			return 1
		case <-time.After(3 * time.Second):
			return 0
		}
	}
}

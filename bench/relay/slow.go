package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// slowClient is one that hardly reads.
type slowClient struct {
	name     string
	none     bool
	interval time.Duration // between bytes; 0: none is read
	secure   bool          // over TLS
}

// measureSlow prints what a client that does not keep up does to the others and to the relay.
func measureSlow(ctx context.Context, s settings) error {
	fmt.Printf("\n### a slow watch of everything beside %d watches of a node, %d writes a second for %d s (medians of %d)\n\n", s.watchers, s.slowRate, 2*s.seconds, s.repeat)
	fmt.Println("| the slow one | others: p50, p99 ms | RSS MB of the relay before, peak | heap MB before, after | watches of the slow one that have ended |")
	fmt.Println("|---|---|---|---|---|")
	for _, secure := range []bool{false, true} {
		for _, c := range []slowClient{
			{name: "none", none: true}, {name: "reads a byte a second", interval: time.Second}, {name: "never reads"},
		} {
			c.secure = secure
			var all []slowness
			for range s.repeat {
				one, err := c.measure(ctx, s)
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				all = append(all, one)
			}
			name := c.name + ", HTTP/1.1"
			if secure {
				name += " with TLS"
			}
			p := func(figure func(slowness) float64) float64 { return of(all, figure) }
			fmt.Printf("| %s | %.2f, %.2f | %.0f, %.0f | %.1f, %.1f | %d of %d |\n", name, p(func(o slowness) float64 { return o.p50 }), p(func(o slowness) float64 { return o.p99 }),
				p(func(o slowness) float64 { return o.before.RSS / 1e6 }), p(func(o slowness) float64 { return o.after.Peak / 1e6 }),
				p(func(o slowness) float64 { return o.before.Heap / 1e6 }), p(func(o slowness) float64 { return o.collected.Heap / 1e6 }), ended(all), len(all))
		}
	}
	return nil
}

// slowness is the outcome of a phase beside a slow client.
type slowness struct {
	delays
	before, after, collected used
	ended                    bool
}

func ended(all []slowness) (n int) {
	for _, o := range all {
		if o.ended {
			n++
		}
	}
	return n
}

func (c slowClient) measure(ctx context.Context, s settings) (o slowness, err error) {
	r, err := newRig(ctx, upstreamSettings{Pods: 10 * s.watchers, Nodes: s.watchers}, relaySettings{Plain: !c.secure})
	if err != nil {
		return o, err
	}
	defer r.stop()
	version, err := r.version(ctx)
	if err != nil {
		return o, err
	}
	watchers, err := watchAll(ctx, s.watchers, r.relay.url, version, false, ofNode)
	if err != nil {
		return o, err
	}
	defer watchers.close()
	if err := r.write(ctx, s.slowRate, s.slowRate); err != nil { // warm
		return o, err
	}
	if o.before, err = ask(ctx, r.relay.control, collected); err != nil {
		return o, err
	}
	if o.before, err = ask(ctx, r.relay.control, resetPeak); err != nil {
		return o, err
	}
	if version, err = r.version(ctx); err != nil {
		return o, err
	}
	stop, err := c.start(ctx, r.relay.url, version)
	if err != nil {
		return o, err
	}
	began := time.Now().UnixNano()
	if err := r.write(ctx, 2*s.seconds*s.slowRate, s.slowRate); err != nil {
		return o, err
	}
	time.Sleep(500 * time.Millisecond)
	if o.after, err = ask(ctx, r.relay.control, asItIs); err != nil {
		return o, err
	}
	if o.collected, err = ask(ctx, r.relay.control, collected); err != nil {
		return o, err
	}
	o.ended = stop()
	watchers.close()
	o.delays = delaysOf(watchers, nil, began)
	return o, nil
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
	r.Header.Set("Accept", protobuf+";stream=watch")
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
		ended := over.Load() || err == nil || !asTimeout(err, &timeout)
		_ = stream.Close()
		return ended
	}, nil
}

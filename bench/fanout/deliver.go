package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// watching is a row of watchers over loopback HTTP: of the pods of a node each, on which nothing
// happens, or of everything, each of which is told each write.
type watching struct {
	served
	Watchers, Writes int
}

func (l watching) String() string {
	if l.Writes > 0 {
		return fmt.Sprintf("%d writes to %d watchers over %s | %s", l.Writes, l.Watchers, l.protocol(), names[l.Library])
	}
	return fmt.Sprintf("%d idle watchers over %s | %s", l.Watchers, l.protocol(), names[l.Library])
}

// rows has the API server and ours, over each protocol.
func (l watching) rows() (rows []watching) {
	for _, protocol := range []served{{HTTP2: true}, {HTTP2: true, TLS: true}, {}} {
		for _, library := range libraries {
			l.HTTP2, l.TLS, l.Library = protocol.HTTP2, protocol.TLS, library
			rows = append(rows, l)
		}
	}
	return rows
}

// measureIdle prints what a watcher that waits costs the server, which is a process of its own.
func measureIdle(ctx context.Context, s harness.Settings, l watching) error {
	return l.measure(ctx, s, harness.Col("heap and stack bytes/watcher", "%.0f", "inuse/watchers"),
		harness.Col("resident bytes/watcher", "%.0f", "rss/watchers"), harness.Col("goroutines/watcher", "%.2f", "goroutines/watchers"))
}

// measureDeliveries prints what a delivery costs the server.
func measureDeliveries(ctx context.Context, s harness.Settings, l watching) error {
	return l.measure(ctx, s, harness.Col("user CPU us/delivery", "%.1f", "user*1e6/watchers/writes"),
		harness.Col("system CPU us/delivery", "%.1f", "system*1e6/watchers/writes"))
}

func (l watching) measure(ctx context.Context, s harness.Settings, columns ...harness.Column) error {
	rows := l.rows()
	medians, err := harness.ByTurns(s.Repeat, rows, func(l watching) (harness.Figures, error) { return l.run(ctx) })
	if err != nil {
		return err
	}
	table := harness.Table{Lead: "load | server", Columns: columns}
	table.Begin("")
	for i, f := range medians {
		table.Row(f, rows[i])
	}
	return nil
}

// run starts a server and the watchers, and has the server write until all watchers have read all
// writes.
func (l watching) run(ctx context.Context) (harness.Figures, error) {
	f, err := l.with(ctx, func(ctx context.Context, client *http.Client, url string) error {
		bodies, err := l.watchAll(ctx, client, url)
		if err != nil || l.Writes == 0 {
			return err
		}
		var readers errgroup.Group
		for _, body := range bodies {
			readers.Go(func() error {
				left := l.Writes
				return harness.ReadFrames(body, func([]byte) bool { left--; return left > 0 })
			})
		}
		if err := harness.Do(ctx, fmt.Sprintf("%s/write?n=%d", url, l.Writes)); err != nil {
			return err
		}
		return readers.Wait()
	})
	if err != nil {
		return nil, err
	}
	f["inuse"], f["watchers"], f["writes"] = f["heap"]+f["stacks"], float64(l.Watchers), float64(l.Writes)
	return f, nil
}

// watchAll begins the watch of each watcher, and returns what they read.
func (l watching) watchAll(ctx context.Context, client *http.Client, url string) (bodies []io.Reader, err error) {
	bodies = make([]io.Reader, l.Watchers)
	var watchers errgroup.Group
	watchers.SetLimit(50) // not all begin at once
	for i := range bodies {
		selector := ""
		if l.Writes == 0 {
			selector = "&fieldSelector=spec.nodeName=" + node(i)
		}
		watchers.Go(func() (err error) {
			query := fmt.Sprintf("watch=1&allowWatchBookmarks=true&timeoutSeconds=3000&resourceVersion=%s%s", world.Version(l.Pods), selector)
			// Gzip is accepted, as by client-go, though no watch is compressed.
			bodies[i], err = harness.Get(ctx, client, url+"/api/v1/pods?"+query, "Accept", harness.Watch, "Accept-Encoding", "gzip")
			return err
		})
	}
	return bodies, watchers.Wait()
}

// writesPerSecond leaves the clients, which share the processors, time to read.
const writesPerSecond = 10

// write makes n writes.
func write(cache subject, pods []*corev1.Pod, n string) error {
	count := 0
	_, err := fmt.Sscan(n, &count)
	tick := time.NewTicker(time.Second / writesPerSecond)
	defer tick.Stop()
	for i := 0; i < count && err == nil; i++ {
		<-tick.C
		p := *pods[i%len(pods)]
		p.ResourceVersion = world.Version(len(pods) + 1 + i)
		err = cache.update(&p, 0)
	}
	return err
}

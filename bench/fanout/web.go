package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// web is a row of clients of a server over loopback HTTP. They list all pods at once; or they watch
// the pods of a node each, on which nothing happens; or everything, each write of which each is
// told.
type web struct {
	served
	Clients int
	Writes  int
	List    string // the media type of the lists; empty: they watch
	Gzip    bool   // is accepted for lists, as by client-go
}

func (l web) String() string {
	switch {
	case l.Writes > 0:
		return fmt.Sprintf("%d writes to %d watchers over %s | %s", l.Writes, l.Clients, l.protocol(), names[l.Library])
	case l.List == "":
		return fmt.Sprintf("%d idle watchers over %s | %s", l.Clients, l.protocol(), names[l.Library])
	}
	how, more := "encodings shared", ""
	if l.Anew {
		how = "encoded for each list"
	}
	if l.HTTP2 {
		more = ", " + l.protocol()
	}
	if l.Gzip {
		more += ", gzip"
	}
	return fmt.Sprintf("%d lists of %d pods at once, %s%s | %s", l.Clients, l.Pods, l.List, more, how)
}

// rows has the API server and ours, over each protocol.
func (l web) rows() (rows []web) {
	for _, protocol := range []served{{HTTP2: true}, {HTTP2: true, TLS: true}, {}} {
		for _, library := range libraries {
			l.HTTP2, l.TLS, l.Library = protocol.HTTP2, protocol.TLS, library
			rows = append(rows, l)
		}
	}
	return rows
}

// listRows have our server encode for each list, and share, by turns. Over HTTP/2 they have it
// share.
func listRows(clients, pods int) (rows []web) {
	ours := served{Library: "tributary", Pods: pods}
	for _, accept := range []string{"application/json", harness.Protobuf} {
		for _, gzip := range []bool{false, true} {
			for _, ours.Anew = range []bool{true, false} {
				rows = append(rows, web{served: ours, Clients: clients, List: accept, Gzip: gzip})
			}
		}
	}
	ours.HTTP2 = true
	for _, ours.TLS = range []bool{false, true} {
		rows = append(rows, web{served: ours, Clients: clients, List: harness.Protobuf})
	}
	return rows
}

// What each costs the server, which is a process of its own.
var (
	idleColumns = []harness.Column{
		harness.Col("heap and stack bytes/watcher", "%.0f", "inuse/clients"),
		harness.Col("resident bytes/watcher", "%.0f", "rss/clients"), harness.Col("goroutines/watcher", "%.2f", "goroutines/clients"),
	}
	deliveryColumns = []harness.Column{
		harness.Col("user CPU us/delivery", "%.1f", "user*1e6/clients/writes"),
		harness.Col("system CPU us/delivery", "%.1f", "system*1e6/clients/writes"),
	}
	listColumns = []harness.Column{
		harness.Col("user CPU ms/list", "%.1f", "user*1e3/clients"), harness.Col("system CPU ms/list", "%.1f", "system*1e3/clients"),
		harness.Col("MB a list", "%.0f", "size/1e6"), harness.Col("resident MB before", "%.0f", "before.rss/1e6"), harness.Col("peak MB", "%.0f", "peak/1e6"),
	}
)

func measureWeb(ctx context.Context, s harness.Settings, rows []web, columns ...harness.Column) {
	rows = slices.DeleteFunc(rows, func(l web) bool { return !s.Wants(l.String()) })
	table := harness.Table{Lead: "load | server", Columns: columns}
	table.Begin("")
	harness.Rows(table, rows, harness.ByTurns(s.Repeat, rows, func(l web) harness.Figures { return l.run(ctx) }))
}

// run has what the server uses meanwhile. Its peak is since the beginning, and before.rss the
// resident set then.
func (l web) run(ctx context.Context) harness.Figures {
	p := harness.Start(ctx, "serve", l.served)
	defer p.Stop()
	ctx, hangUp := context.WithCancel(ctx) // sockets that stay open are missing in the next row
	defer hangUp()
	client := harness.Client(l.HTTP2)
	// The server is asked by the client, so that its connection is open before.
	used := func(how string) harness.Figures { return harness.CallBy[harness.Figures](ctx, client, p.URL()+how) }
	before := used(harness.Returned)
	size := l.use(ctx, client, p.URL())
	at, after := used(harness.AsItIs), used(harness.Returned)
	f := after.Since(before).With("before.", before)
	f["user"], f["system"], f["peak"] = at["user"]-before["user"], at["system"]-before["system"], at["peak"]
	f["inuse"], f["clients"], f["writes"], f["size"] = f["heap"]+f["stacks"], float64(l.Clients), float64(l.Writes), float64(size)
	return f
}

// use returns when all have read what they want: the length of a list.
func (l web) use(ctx context.Context, client *http.Client, url string) (size int64) {
	if l.List == "" {
		l.watch(ctx, client, url)
		return 0
	}
	coding := "identity"
	if l.Gzip {
		coding = "gzip"
	}
	sizes := make([]int64, l.Clients)
	harness.AtOnce(l.Clients, l.Clients, func(i int) {
		sizes[i] = harness.Discard(ctx, client, url+"/api/v1/pods", "Accept", l.List, "Accept-Encoding", coding)
	})
	return sizes[0]
}

// watch begins all watches, and returns when all have read all writes. Watches stay open.
func (l web) watch(ctx context.Context, client *http.Client, url string) {
	bodies := make([]io.Reader, l.Clients)
	harness.AtOnce(l.Clients, 50, func(i int) {
		query := "watch=1&allowWatchBookmarks=true&timeoutSeconds=3000&resourceVersion=" + world.Version(l.Pods)
		if l.Writes == 0 {
			query += "&fieldSelector=spec.nodeName=" + node(i)
		}
		// Gzip is accepted, as by client-go, though no watch is compressed.
		bodies[i] = harness.Get(ctx, client, url+"/api/v1/pods?"+query, "Accept", harness.Watch, "Accept-Encoding", "gzip")
	})
	if l.Writes == 0 {
		return
	}
	read := make(chan error, 1)
	go func() {
		read <- harness.Try(func() {
			harness.AtOnce(l.Clients, l.Clients, func(i int) {
				left := l.Writes
				harness.Check(harness.ReadFrames(bodies[i], func([]byte) bool { left--; return left > 0 }))
			})
		})
	}()
	harness.Do(ctx, fmt.Sprintf("%s/write?n=%d", url, l.Writes))
	harness.Check(<-read)
}

// writesPerSecond leaves the clients, which share the processors, time to read.
const writesPerSecond = 10

// write makes n writes.
func write(cache subject, pods []*corev1.Pod, n int) {
	tick := time.NewTicker(time.Second / writesPerSecond)
	defer tick.Stop()
	for i := range n {
		<-tick.C
		p := *pods[i%len(pods)]
		p.ResourceVersion = world.Version(len(pods) + 1 + i)
		harness.Check(cache.update(&p, 0))
	}
}

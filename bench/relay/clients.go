package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
)

// list reads the list of all pods.
func list(ctx context.Context, client *http.Client, url, query string) {
	harness.Discard(ctx, client, url+"/api/v1/pods"+query, "Accept", harness.Protobuf, "Authorization", "Bearer lister")
}

// ofNode selects the pods of a node.
func ofNode(i int) string { return "&fieldSelector=spec.nodeName%3D" + cluster.Node(i) }

// ofAll selects all pods.
func ofAll(int) string { return "" }

// watch begins a watch of pods at a version.
func watch(ctx context.Context, client *http.Client, url, version, selector, token string) io.ReadCloser {
	query := "?watch=1&allowWatchBookmarks=true&timeoutSeconds=3000&resourceVersion=" + version + selector
	return harness.Get(ctx, client, url+"/api/v1/pods"+query, "Accept", harness.Watch, "Authorization", "Bearer "+token)
}

// group is watchers with a connection each, as agents in processes of their own have.
type group struct {
	arrivals [][]arrival
	clients  []*http.Client
	readers  errgroup.Group
	hangUp   context.CancelFunc
}

// arrival is an event: when it was written, and when it came.
type arrival struct{ written, came int64 }

// watchAll begins a number of watches. Each reads until close.
func watchAll(ctx context.Context, watchers int, url, version string, http2 bool, selector func(i int) string) *group {
	g := &group{arrivals: make([][]arrival, watchers)}
	ctx, g.hangUp = context.WithCancel(ctx)
	for i := range watchers {
		client := harness.Client(http2)
		body := watch(ctx, client, url, version, selector(i), fmt.Sprint("agent-", i))
		g.clients = append(g.clients, client)
		g.readers.Go(func() error { g.arrivals[i] = readArrivals(body); return nil })
	}
	return g
}

// close ends all watches. Then arrivals are complete.
func (g *group) close() {
	g.hangUp()
	_ = g.readers.Wait()
	for _, client := range g.clients {
		client.CloseIdleConnections()
	}
}

// readArrivals reads a watch to its end.
func readArrivals(body io.ReadCloser) (all []arrival) {
	defer body.Close()
	_ = harness.ReadFrames(body, func(frame []byte) bool {
		if written, ok := writtenAt(frame); ok {
			all = append(all, arrival{written, time.Now().UnixNano()})
		}
		return true
	})
	return all
}

// writtenAt finds the annotation of an object: its key, two bytes, and 19 digits.
func writtenAt(event []byte) (at int64, ok bool) {
	_, value, found := bytes.Cut(event, []byte(cluster.Stamp))
	if !found || len(value) < 21 {
		return 0, false
	}
	at, err := strconv.ParseInt(string(value[2:21]), 10, 64)
	return at, err == nil
}

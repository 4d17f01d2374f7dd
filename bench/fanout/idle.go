package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tributary-go/tributary/bench/world"
)

// idle is a row of watchers over loopback HTTP that wait, each of the pods of its node.
type idle struct {
	served
	HTTP2    bool
	Watchers int
}

func (l idle) String() string {
	return fmt.Sprintf("%d idle watchers over %s", l.Watchers, l.protocol())
}

func (l idle) protocol() string {
	protocol := "HTTP/1.1"
	if l.HTTP2 {
		protocol = "HTTP/2"
	}
	if l.TLS {
		protocol += " with TLS"
	}
	return protocol
}

// idleRows has the API server and ours by turns.
func idleRows(watchers, pods int) (rows []idle) {
	for _, protocol := range []idle{{HTTP2: true}, {HTTP2: true, served: served{TLS: true}}, {}} {
		protocol.Watchers, protocol.Pods = watchers, pods
		for _, library := range libraries {
			protocol.Library = library
			rows = append(rows, protocol)
		}
	}
	return rows
}

// measureIdle prints what a watcher costs the server, which is a process of its own.
func measureIdle(ctx context.Context, rows []idle, repeat int) error {
	fmt.Println("| load | server | heap and stack bytes/watcher | resident bytes/watcher | goroutines/watcher |")
	fmt.Println("|---|---|---|---|---|")
	for _, l := range rows {
		var runs []used
		for range repeat {
			m, err := l.run(ctx)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", l.Library, l, err)
			}
			runs = append(runs, m)
		}
		slices.SortFunc(runs, func(a, b used) int { return int(a.InUse - b.InUse) })
		m := runs[len(runs)/2]
		per := 1 / float64(l.Watchers)
		fmt.Printf("| %s | %s | %.0f | %.0f | %.2f |\n", l, names[l.Library], m.InUse*per, m.Resident*per, m.Goroutines*per)
	}
	return nil
}

// run starts a server, then the watchers, and returns what has grown.
func (l idle) run(ctx context.Context) (grown used, err error) {
	url, stop, err := l.start(ctx)
	if err != nil {
		return grown, err
	}
	defer stop()
	ctx, hangUp := context.WithCancel(ctx) // sockets that stay open are missing in the next row
	defer hangUp()
	client := &http.Client{Transport: transport(l.HTTP2)}
	before, err := readUsed(ctx, client, url)
	if err != nil {
		return grown, err
	}
	ofNode := func(i int) string { return "&fieldSelector=spec.nodeName=" + node(i) }
	if _, err := l.watchAll(ctx, client, url, ofNode); err != nil {
		return grown, err
	}
	after, err := readUsed(ctx, client, url)
	return used{
		InUse: after.InUse - before.InUse, Resident: after.Resident - before.Resident, Goroutines: after.Goroutines - before.Goroutines,
	}, err
}

// watchAll begins the watch of each watcher, and returns what they read.
func (l idle) watchAll(ctx context.Context, client *http.Client, url string, selector func(i int) string) (bodies []io.Reader, err error) {
	bodies = make([]io.Reader, l.Watchers)
	var watchers errgroup.Group
	watchers.SetLimit(50) // not all begin at once
	for i := range bodies {
		watchers.Go(func() (err error) {
			bodies[i], err = l.watch(ctx, client, url, selector(i))
			return err
		})
	}
	return bodies, watchers.Wait()
}

// watch begins a watch in protobuf, which lasts until the server ends.
func (l idle) watch(ctx context.Context, client *http.Client, url, selector string) (body io.Reader, err error) {
	query := fmt.Sprintf("watch=1&allowWatchBookmarks=true&timeoutSeconds=3000&resourceVersion=%s%s", world.Version(l.Pods), selector)
	answer, err := get(ctx, client, url+"/api/v1/pods?"+query, "application/vnd.kubernetes.protobuf;stream=watch")
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		return nil, fmt.Errorf("%s: %s", answer.Status, text)
	}
	return answer.Body, nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/tributary-go/tributary/bench/harness"
)

// lists is a row of clients that list all pods at once over loopback HTTP.
type lists struct {
	served
	Clients int
	Accept  string
	Gzip    bool // the clients accept it, as those of client-go do
}

func (l lists) String() string {
	how := "encodings shared"
	if l.Anew {
		how = "encoded for each list"
	}
	more := ""
	if l.HTTP2 {
		more = ", " + l.protocol()
	}
	if l.Gzip {
		more += ", gzip"
	}
	return fmt.Sprintf("%d lists of %d pods at once, %s%s | %s", l.Clients, l.Pods, l.Accept, more, how)
}

// listRows have our server encode for each list, and share, by turns. Over HTTP/2 they have it
// share.
func listRows(clients, pods int) (rows []lists) {
	for _, accept := range []string{"application/json", harness.Protobuf} {
		for _, gzip := range []bool{false, true} {
			for _, anew := range []bool{true, false} {
				rows = append(rows, lists{served{Library: "tributary", Pods: pods, Anew: anew}, clients, accept, gzip})
			}
		}
	}
	for _, tls := range []bool{false, true} {
		s := served{Library: "tributary", Pods: pods, HTTP2: true, TLS: tls}
		rows = append(rows, lists{s, clients, harness.Protobuf, false})
	}
	return rows
}

// measureLists prints what lists at once cost the server, which is a process of its own.
func measureLists(ctx context.Context, s harness.Settings, rows []lists) error {
	table := harness.Table{Lead: "load | server", Columns: []harness.Column{
		harness.Col("user CPU ms/list", "%.1f", "user*1e3/clients"), harness.Col("system CPU ms/list", "%.1f", "system*1e3/clients"),
		harness.Col("MB a list", "%.0f", "size/1e6"), harness.Col("resident MB before", "%.0f", "before.rss/1e6"), harness.Col("peak MB", "%.0f", "peak/1e6"),
	}}
	table.Begin("")
	for _, l := range rows {
		if !s.Wants(l.String()) {
			continue
		}
		f, err := l.run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", l, err)
		}
		table.Row(f, l)
	}
	return nil
}

func (l lists) run(ctx context.Context) (harness.Figures, error) {
	coding := "identity"
	if l.Gzip {
		coding = "gzip"
	}
	size := make([]int64, l.Clients)
	f, err := l.with(ctx, func(ctx context.Context, client *http.Client, url string) error {
		var clients errgroup.Group
		for i := range l.Clients {
			clients.Go(func() error {
				body, err := harness.Get(ctx, client, url+"/api/v1/pods", "Accept", l.Accept, "Accept-Encoding", coding)
				if err != nil {
					return err
				}
				defer body.Close()
				size[i], err = io.Copy(io.Discard, body)
				return err
			})
		}
		return clients.Wait()
	})
	if err != nil {
		return nil, err
	}
	f["clients"], f["size"] = float64(l.Clients), float64(size[0])
	return f, nil
}

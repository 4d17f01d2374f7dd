package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"
)

// lists is a row of clients that list all pods at once over loopback HTTP.
type lists struct {
	served
	HTTP2   bool
	Clients int
	Accept  string
	Gzip    bool // the clients accept it, as those of client-go do
}

func (l lists) String() string {
	how := "encodings shared"
	if l.Anew {
		how = "encoded for each list"
	}
	protocol := ""
	if l.HTTP2 {
		protocol = ", HTTP/2"
	}
	if l.TLS {
		protocol += " with TLS"
	}
	if l.Gzip {
		protocol += ", gzip"
	}
	return fmt.Sprintf("%d lists of %d pods at once, %s%s | %s", l.Clients, l.Pods, l.Accept, protocol, how)
}

// listRows have our server encode for each list, and share, by turns. Over HTTP/2 they have it
// share.
func listRows(clients, pods int) (rows []lists) {
	for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		for _, gzip := range []bool{false, true} {
			for _, anew := range []bool{true, false} {
				rows = append(rows, lists{served{Library: "tributary", Pods: pods, Anew: anew}, false, clients, accept, gzip})
			}
		}
	}
	for _, tls := range []bool{false, true} {
		s := served{Library: "tributary", Pods: pods, TLS: tls}
		rows = append(rows, lists{s, true, clients, "application/vnd.kubernetes.protobuf", false})
	}
	return rows
}

// measureLists prints what lists at once cost the server, which is a process of its own.
func measureLists(ctx context.Context, rows []lists, only string) error {
	fmt.Println("| load | server | user CPU ms/list | system CPU ms/list | MB a list | resident MB before | peak MB |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, l := range rows {
		if !strings.Contains(l.String(), only) {
			continue
		}
		if err := l.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", l, err)
		}
	}
	return nil
}

func (l lists) run(ctx context.Context) error {
	url, stop, err := l.start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	transport := transport(l.HTTP2)
	transport.DisableCompression = true // or it would read what is compressed
	client := &http.Client{Transport: transport}
	coding := "" // none, then
	if l.Gzip {
		coding = "gzip"
	}
	before, err := readUsed(ctx, client, url)
	if err != nil {
		return err
	}
	var clients errgroup.Group
	size := make([]int64, l.Clients)
	for i := range l.Clients {
		clients.Go(func() error {
			answer, err := getCoded(ctx, client, url+"/api/v1/pods", l.Accept, coding)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			size[i], err = io.Copy(io.Discard, answer.Body)
			return err
		})
	}
	if err := clients.Wait(); err != nil {
		return err
	}
	after, err := readUsed(ctx, client, url)
	if err != nil {
		return err
	}
	fmt.Printf("| %s | %.1f | %.1f | %.0f | %.0f | %.0f |\n", l, (after.CPU-before.CPU)*1e3/float64(l.Clients), (after.System-before.System)*1e3/float64(l.Clients),
		float64(size[0])/1e6, before.Resident/1e6, after.PeakMB)
	return nil
}

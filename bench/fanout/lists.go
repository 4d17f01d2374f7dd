package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"golang.org/x/sync/errgroup"
)

// lists is a row of clients that list all pods at once over loopback HTTP.
type lists struct {
	served
	Clients int
	Accept  string
}

func (l lists) String() string {
	how := "encodings shared"
	if l.Anew {
		how = "encoded for each list"
	}
	return fmt.Sprintf("%d lists of %d pods at once, %s | %s", l.Clients, l.Pods, l.Accept, how)
}

// listRows have our server encode for each list, and share, by turns.
func listRows(clients, pods int) (rows []lists) {
	for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		for _, anew := range []bool{true, false} {
			rows = append(rows, lists{served{Library: "tributary", Pods: pods, Anew: anew}, clients, accept})
		}
	}
	return rows
}

// measureLists prints what lists at once cost the server, which is a process of its own.
func measureLists(ctx context.Context, rows []lists) error {
	fmt.Println("| load | server | user CPU ms/list | MB a list | resident MB before | peak MB |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, l := range rows {
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
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	before, err := readUsed(ctx, client, url)
	if err != nil {
		return err
	}
	var clients errgroup.Group
	size := make([]int64, l.Clients)
	for i := range l.Clients {
		clients.Go(func() error {
			answer, err := get(ctx, client, url+"/api/v1/pods", l.Accept)
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
	fmt.Printf("| %s | %.1f | %.0f | %.0f | %.0f |\n", l, (after.CPU-before.CPU)*1e3/float64(l.Clients),
		float64(size[0])/1e6, before.Resident/1e6, after.PeakMB)
	return nil
}

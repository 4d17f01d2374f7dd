package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/bench/world"
)

// deliver is a row of watchers of everything over loopback HTTP, which are told each write.
type deliver struct {
	idle
	Writes int
}

// writesPerSecond leaves the clients, which share the processors, time to read.
const writesPerSecond = 10

func (l deliver) String() string {
	return fmt.Sprintf("%d writes to %d watchers over %s", l.Writes, l.Watchers, l.protocol())
}

// deliverRows has the API server and ours.
func deliverRows(watchers, pods, writes int) (rows []deliver) {
	for _, protocol := range []idle{{HTTP2: true}, {HTTP2: true, served: served{TLS: true}}, {}} {
		protocol.Watchers, protocol.Pods = watchers, pods
		for _, library := range libraries {
			protocol.Library = library
			rows = append(rows, deliver{protocol, writes})
		}
	}
	return rows
}

// measureDeliveries prints what a delivery costs the server. Repetitions of all rows are by turns.
func measureDeliveries(ctx context.Context, rows []deliver, repeat int) error {
	runs := make([][]used, len(rows))
	for range repeat {
		for i, l := range rows {
			m, err := l.run(ctx)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", l.Library, l, err)
			}
			runs[i] = append(runs[i], m)
		}
	}
	fmt.Println("| load | server | user CPU us/delivery | system CPU us/delivery |")
	fmt.Println("|---|---|---|---|")
	for i, l := range rows {
		slices.SortFunc(runs[i], func(a, b used) int { return cmp.Compare(a.CPU+a.System, b.CPU+b.System) })
		m, deliveries := runs[i][repeat/2], float64(l.Watchers*l.Writes)
		fmt.Printf("| %s | %s | %.1f | %.1f |\n", l, names[l.Library], m.CPU*1e6/deliveries, m.System*1e6/deliveries)
	}
	return nil
}

// run starts a server and the watchers, has the server write, and returns what it has used until
// all watchers have read all writes.
func (l deliver) run(ctx context.Context) (spent used, err error) {
	url, stop, err := l.start(ctx)
	if err != nil {
		return spent, err
	}
	defer stop()
	ctx, hangUp := context.WithCancel(ctx)
	defer hangUp()
	client := &http.Client{Transport: transport(l.HTTP2)}
	everything := func(int) string { return "" }
	bodies, err := l.watchAll(ctx, client, url, everything)
	if err != nil {
		return spent, err
	}
	before, err := readUsed(ctx, client, url)
	if err != nil {
		return spent, err
	}
	var readers errgroup.Group
	for _, body := range bodies {
		readers.Go(func() error { return readEvents(body, l.Writes) })
	}
	answer, err := get(ctx, client, fmt.Sprintf("%s%s?n=%d", url, writePath, l.Writes), "")
	if err != nil {
		return spent, err
	}
	_ = answer.Body.Close()
	if err := readers.Wait(); err != nil {
		return spent, err
	}
	after, err := readUsed(ctx, client, url)
	return used{CPU: after.CPU - before.CPU, System: after.System - before.System}, err
}

// readEvents reads that many events of a watch in protobuf, each after its length.
func readEvents(body io.Reader, events int) error {
	in := bufio.NewReader(body)
	for range events {
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return err
		}
		if _, err := in.Discard(int(binary.BigEndian.Uint32(length[:]))); err != nil {
			return err
		}
	}
	return nil
}

const writePath = "/write"

// writing is a handler that makes n writes, and answers after the last of them.
func writing(cache subject, pods []*corev1.Pod) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n := 0
		_, err := fmt.Sscan(r.FormValue("n"), &n)
		tick := time.NewTicker(time.Second / writesPerSecond)
		defer tick.Stop()
		for i := 0; i < n && err == nil; i++ {
			<-tick.C
			p := *pods[i%len(pods)]
			p.ResourceVersion = world.Version(len(pods) + 1 + i)
			err = cache.update(&p, 0)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

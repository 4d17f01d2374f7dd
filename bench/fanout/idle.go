package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"

	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/internal/self"
)

// idle is a row of watchers over loopback HTTP that wait, each of the pods of its node.
type idle struct {
	served
	HTTP2    bool
	Watchers int
}

func (l idle) String() string {
	protocol := "HTTP/1.1"
	if l.HTTP2 {
		protocol = "HTTP/2"
	}
	return fmt.Sprintf("%d idle watchers over %s", l.Watchers, protocol)
}

// idleRows has the API server and ours by turns.
func idleRows(watchers, pods int) (rows []idle) {
	for _, http2 := range []bool{true, false} {
		for _, library := range libraries {
			rows = append(rows, idle{served{Library: library, Pods: pods}, http2, watchers})
		}
	}
	return append(rows, idle{served{Library: "tributary", Pods: pods, Parked: true}, false, watchers})
}

// measureIdle prints what a watcher costs the server, which is a process of its own.
func measureIdle(ctx context.Context, rows []idle, repeat int) error {
	fmt.Println("| load | server | heap and stack bytes/watcher | resident bytes/watcher | goroutines/watcher |")
	fmt.Println("|---|---|---|---|---|")
	for _, l := range rows {
		var runs []memory
		for range repeat {
			m, err := l.run(ctx)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", l.Library, l, err)
			}
			runs = append(runs, m)
		}
		slices.SortFunc(runs, func(a, b memory) int { return int(a.InUse - b.InUse) })
		m, name := runs[len(runs)/2], map[string]string{"cacher": "API server", "tributary": "ours"}[l.Library]
		if l.Parked {
			name += ", parked"
		}
		per := 1 / float64(l.Watchers)
		fmt.Printf("| %s | %s | %.0f | %.0f | %.2f |\n", l, name, m.InUse*per, m.Resident*per, m.Goroutines*per)
	}
	return nil
}

// run starts a server, then the watchers, and returns what has grown.
func (l idle) run(ctx context.Context) (grown memory, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	url, err := l.start(ctx)
	if err != nil {
		return grown, err
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!l.HTTP2)
	protocols.SetUnencryptedHTTP2(l.HTTP2)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	before, err := readMemory(ctx, client, url)
	if err != nil {
		return grown, err
	}
	var watchers sync.WaitGroup
	errs, tickets := make(chan error, l.Watchers), make(chan struct{}, 50)
	for i := range l.Watchers {
		tickets <- struct{}{} // not all begin at once
		watchers.Go(func() {
			errs <- l.watch(ctx, client, url, i)
			<-tickets
		})
	}
	watchers.Wait()
	for range l.Watchers {
		if err := <-errs; err != nil {
			return grown, err
		}
	}
	after, err := readMemory(ctx, client, url)
	return memory{after.InUse - before.InUse, after.Resident - before.Resident, after.Goroutines - before.Goroutines}, err
}

// start starts the server, and returns its URL.
func (l idle) start(ctx context.Context) (url string, err error) {
	asked, err := json.Marshal(l.served)
	if err != nil {
		return "", err
	}
	cmd, err := self.Command(ctx, "serve", string(asked))
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = cmd.Wait() }) // it has been killed
	line, err := bufio.NewReader(out).ReadString('\n')
	return line[:max(0, len(line)-1)], err
}

// watch begins a watch, which lasts until ctx ends.
func (l idle) watch(ctx context.Context, client *http.Client, url string, i int) error {
	answer, err := get(ctx, client, fmt.Sprintf("%s/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=3000&resourceVersion=%s&fieldSelector=spec.nodeName=%s",
		url, world.Version(l.Pods), node(i)))
	if err == nil && answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

func get(ctx context.Context, client *http.Client, url string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/vnd.kubernetes.protobuf;stream=watch")
	return client.Do(r)
}

// memory is what a process uses.
type memory struct{ InUse, Resident, Goroutines float64 }

func readMemory(ctx context.Context, client *http.Client, url string) (m memory, err error) {
	answer, err := get(ctx, client, url+memoryPath)
	if err != nil {
		return m, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m)
}

// resident is the resident set, in bytes.
func resident() (bytes float64) {
	text, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(text), new(float64), &bytes)
	}
	if err != nil {
		panic(err)
	}
	return bytes * float64(os.Getpagesize())
}

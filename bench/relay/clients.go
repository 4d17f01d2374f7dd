package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// transport has connections of one protocol. It believes any certificate: the server is on this
// machine.
func transport(http2 bool) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	return &http.Transport{
		Protocols: protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true,
	}
}

func get(ctx context.Context, client *http.Client, url, accept, token string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		err = fmt.Errorf("%s: %s: %s", url, answer.Status, text)
	}
	return answer, err
}

// list reads the list of all pods, and returns its length.
func list(ctx context.Context, client *http.Client, url, query string) (bytes int64, err error) {
	answer, err := get(ctx, client, url+"/api/v1/pods"+query, protobuf, "lister")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	return io.Copy(io.Discard, answer.Body)
}

// ofNode selects the pods of a node.
func ofNode(i int) string { return "&fieldSelector=spec.nodeName%3D" + nodeName(i) }

// watch begins a watch of pods at a version.
func watch(ctx context.Context, client *http.Client, url, version, selector, token string) (io.ReadCloser, error) {
	query := "?watch=1&allowWatchBookmarks=true&timeoutSeconds=3000&resourceVersion=" + version + selector
	answer, err := get(ctx, client, url+"/api/v1/pods"+query, protobuf+";stream=watch", token)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
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
func watchAll(ctx context.Context, watchers int, url, version string, http2 bool, selector func(i int) string) (*group, error) {
	g := &group{arrivals: make([][]arrival, watchers)}
	ctx, g.hangUp = context.WithCancel(ctx)
	for i := range watchers {
		client := &http.Client{Transport: transport(http2)}
		body, err := watch(ctx, client, url, version, selector(i), fmt.Sprint("agent-", i))
		if err != nil {
			g.close()
			return nil, err
		}
		g.clients = append(g.clients, client)
		g.readers.Go(func() error { g.arrivals[i] = readEvents(body); return nil })
	}
	return g, nil
}

// close ends all watches. Then arrivals are complete.
func (g *group) close() {
	g.hangUp()
	_ = g.readers.Wait()
	for _, client := range g.clients {
		client.CloseIdleConnections()
	}
}

// readEvents reads a watch in protobuf to its end: events, each after its length.
func readEvents(body io.ReadCloser) (all []arrival) {
	defer body.Close()
	in := bufio.NewReaderSize(body, 64<<10)
	buffer := make([]byte, 64<<10)
	for {
		var length [4]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return all
		}
		n := int(binary.BigEndian.Uint32(length[:]))
		if n > len(buffer) {
			buffer = make([]byte, n)
		}
		if _, err := io.ReadFull(in, buffer[:n]); err != nil {
			return all
		}
		if written, ok := writtenAt(buffer[:n]); ok {
			all = append(all, arrival{written, time.Now().UnixNano()})
		}
	}
}

// writtenAt finds the annotation of an object: its key, two bytes, and 19 digits.
func writtenAt(event []byte) (at int64, ok bool) {
	_, value, found := bytes.Cut(event, []byte(stamp))
	if !found || len(value) < 21 {
		return 0, false
	}
	at, err := strconv.ParseInt(string(value[2:21]), 10, 64)
	return at, err == nil
}

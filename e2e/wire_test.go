package e2e_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// wire is what one client sent, and what it got back.
type wire struct {
	hold func(*http.Request) // called before each request, and may block; nil for nothing

	mu       sync.Mutex // guards what follows
	requests []*request
}

// request is one GET of a collection.
type request struct {
	kind       requestKind
	version    string // the resourceVersion asked for
	next       bool   // with a continue token
	at         time.Time
	answered   time.Time // when the header came, or the error
	code       int       // 0 for none
	retryAfter time.Duration
	refusal    string // the beginning of the body, if the code is an error's
	bytes      int    // of the body, as it came off the wire
}

type requestKind string

const (
	list      requestKind = "list"
	watches   requestKind = "watch"
	watchList requestKind = "watch list"
)

// on makes the client of a config report to the wire.
func (w *wire) on(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &tap{wire: w, next: next} })
	return config
}

// log is a copy of the requests so far, in the order in which they were sent.
func (w *wire) log() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	log := make([]request, len(w.requests))
	for i, r := range w.requests {
		log[i] = *r
	}
	return log
}

// since is the log from a moment on.
func (w *wire) since(t time.Time) []request {
	var log []request
	for _, r := range w.log() {
		if !r.at.Before(t) {
			log = append(log, r)
		}
	}
	return log
}

func (w *wire) bytes() (sum int) {
	for _, r := range w.log() {
		sum += r.bytes
	}
	return sum
}

// count is the number of requests of a kind with an answer of 2xx.
func count(log []request, kind requestKind) (n int) {
	for _, r := range log {
		if r.kind == kind && r.code/100 == 2 && !r.next {
			n++
		}
	}
	return n
}

// tap records the requests of one transport.
type tap struct {
	wire *wire
	next http.RoundTripper
}

func (t *tap) RoundTrip(sent *http.Request) (*http.Response, error) {
	if t.wire.hold != nil {
		t.wire.hold(sent)
	}
	r := t.wire.add(sent)
	answer, err := t.next.RoundTrip(sent)
	t.wire.mu.Lock()
	defer t.wire.mu.Unlock()
	r.answered = time.Now()
	if err != nil {
		return answer, err
	}
	r.code = answer.StatusCode
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
		r.retryAfter = time.Duration(seconds) * time.Second
	}
	if r.code >= http.StatusBadRequest {
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		answer.Body = io.NopCloser(bytes.NewReader(body))
		r.refusal = string(body[:min(len(body), 500)])
	}
	answer.Body = &countedBody{ReadCloser: answer.Body, wire: t.wire, request: r}
	return answer, nil
}

func (w *wire) add(sent *http.Request) *request {
	query := sent.URL.Query()
	r := &request{kind: list, version: query.Get("resourceVersion"), next: query.Has("continue"), at: time.Now()}
	switch {
	case query.Get("sendInitialEvents") == "true":
		r.kind = watchList
	case query.Get("watch") != "" && query.Get("watch") != "false":
		r.kind = watches
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r)
	return r
}

// countedBody counts what is read.
type countedBody struct {
	io.ReadCloser
	wire    *wire
	request *request
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.wire.mu.Lock()
	defer b.wire.mu.Unlock()
	b.request.bytes += n
	return n, err
}

func linesOf(text []byte) []string { return strings.Split(string(text), "\n") }

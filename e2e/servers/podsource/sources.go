package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/config"
)

const period = time.Millisecond

// results is what a source emits and complains of, in its order: it waits until each was taken.
type results struct {
	updates  reflect.Value // a channel of a type that the kubelet does not export
	failures chan error
}

// newResults makes the channel that a source is given as the last argument of its constructor.
func newResults(constructor any) results {
	t := reflect.TypeOf(constructor)
	updates := t.In(t.NumIn() - 1).Elem()
	return results{reflect.MakeChan(reflect.ChanOf(reflect.BothDir, updates), 0), make(chan error)}
}

// start calls the constructor, which may block.
func (r results) start(constructor any, arguments ...any) {
	f := reflect.ValueOf(constructor)
	in := []reflect.Value{reflect.ValueOf(logr.New(complaints{failures: r.failures}))}
	for _, argument := range arguments {
		in = append(in, reflect.ValueOf(argument).Convert(f.Type().In(len(in))))
	}
	go f.Call(append(in, r.updates.Convert(f.Type().In(len(in)))))
}

// either waits for the next result, or for get; it reports whether it was a result.
func (r results) either(a *answer, get reflect.Value) (value reflect.Value, isResult bool) {
	cases := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: r.updates}, {Dir: reflect.SelectRecv, Chan: reflect.ValueOf(r.failures)}}
	if get.IsValid() {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: get})
	}
	switch i, value, _ := reflect.Select(cases); i {
	case 0:
		a.Pods = value.FieldByName("Pods").Interface().([]*corev1.Pod)
	case 1:
		a.Rejected = value.Interface().(error).Error()
	default:
		return value, false
	}
	return reflect.Value{}, true
}

// complaints is a log that keeps the errors.
type complaints struct{ failures chan error }

func (complaints) Init(logr.RuntimeInfo)            {}
func (complaints) Enabled(int) bool                 { return true }
func (c complaints) WithValues(...any) logr.LogSink { return c }
func (c complaints) WithName(string) logr.LogSink   { return c }

func (c complaints) Error(err error, message string, _ ...any) {
	if err != nil && message == "Unable to read config path" {
		c.failures <- err
	}
}

func (c complaints) Info(_ int, _ string, pairs ...any) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if err, ok := pairs[i+1].(error); ok && pairs[i] == "err" {
			c.failures <- err
		}
	}
}

// fileSource is the kubelet's file source at a path that is switched from file to file. No file is
// ever touched again, so that nothing comes of inotify.
type fileSource struct {
	results
	folder string
	asked  int
}

func (s *fileSource) ask(manifest []byte) (a answer, err error) {
	s.asked++
	path, link := filepath.Join(s.folder, fmt.Sprint(s.asked)), filepath.Join(s.folder, "link")
	if err := os.WriteFile(path, manifest, 0o600); err != nil {
		return a, err
	}
	if err := os.Symlink(path, link); err != nil {
		return a, err
	}
	current := filepath.Join(s.folder, "current")
	if err := os.Rename(link, current); err != nil {
		return a, err
	}
	if s.failures == nil {
		s.results = newResults(config.NewSourceFile)
		s.start(config.NewSourceFile, current, node, period)
	}
	s.either(&a, reflect.Value{}) // what it read before
	a = answer{}
	s.either(&a, reflect.Value{})
	return a, nil
}

// urlSource is the kubelet's URL source; the server that it asks ends with the process.
type urlSource struct {
	results
	gets      chan chan []byte
	questions chan []byte
	answers   chan answer
}

func newURLSource() *urlSource {
	s := &urlSource{results: newResults(config.NewSourceURL), gets: make(chan chan []byte), questions: make(chan []byte), answers: make(chan answer)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		get := make(chan []byte)
		s.gets <- get
		_, _ = w.Write(<-get)
	}))
	s.start(config.NewSourceURL, server.URL, http.Header{}, node, period)
	go s.serve()
	return s
}

func (s *urlSource) ask(manifest []byte) answer {
	s.questions <- manifest
	return <-s.answers
}

// none makes the source forget what it has read: the same manifest once more is no news to it.
var none = []byte(`{"kind":"PodList","apiVersion":"v1"}`)

// serve answers every request of the source, and reads its mind between two of them.
func (s *urlSource) serve() {
	var a answer
	next := func() chan []byte { // a result that comes before it belongs to the request before
		for {
			if get, isResult := s.either(&a, reflect.ValueOf(s.gets)); !isResult {
				return get.Interface().(chan []byte)
			}
		}
	}
	get := next()
	for {
		select {
		case manifest := <-s.questions:
			get <- none
			get = next()
			a = answer{}
			get <- manifest
			get = next()
			s.answers <- a
		default: // it would give up waiting
			get <- none
			get = next()
		}
	}
}

package listwatchtest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver"
)

// Server is a fake API server: the collections that [Serve] puts on it, under one count of resource versions, behind
// two doors. [Server.Config] is the door in memory, [Server.Listen] the one over HTTP; what a client sees, and what
// faults do to it, is the same through both. It ends with its test.
//
// All methods are safe for concurrent use. Those that fail the test must be called from the test's goroutine, as
// testing.TB demands.
type Server struct {
	t       testing.TB
	options []watchcache.Option
	origin  *apiserver.Server

	// closed ends with the test. It is a context so that those of requests can be joined with it.
	closed context.Context
	end    context.CancelFunc

	listen func() *rest.Config // once

	mutations listwatch.Option // has writes into what was read fail the test

	mu       sync.Mutex // guards what follows
	requests []Request
	underWay map[*exchange]struct{}
	faults   []*Fault
	changed  chan struct{} // closes at the next change of the above; nil while nobody waits
}

// NewServer makes a fake without collections, which ends with t. The options are those of the server behind it: the
// size of the window, how often bookmarks come, how long a list waits for a version of the future.
//
// Inside a testing/synctest bubble, make it with the bubble's own t.
func NewServer(t testing.TB, options ...watchcache.Option) *Server {
	t.Helper()
	origin, err := apiserver.NewServer(options...)
	if err != nil {
		t.Fatalf("listwatchtest: %v", err)
	}
	s := &Server{t: t, options: options, origin: origin, underWay: map[*exchange]struct{}{}}
	s.closed, s.end = context.WithCancel(context.Background())
	s.listen = sync.OnceValue(s.startListening)
	s.mutations = listwatch.WithMutationDetector(s.reporter())
	t.Cleanup(func() {
		s.end()
		origin.Close()
	})
	return s
}

// reporter fails the test for each mutation that is found before its end; nil in a benchmark, where the search would be measured.
func (s *Server) reporter() func(listwatch.Mutation) {
	if _, ok := s.t.(*testing.B); ok {
		return nil
	}
	var mu sync.Mutex // a test that has ended must not be failed
	var ended bool
	s.t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
	})
	return func(m listwatch.Mutation) {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			s.t.Errorf("listwatchtest: %s was written into: %q, read at version %s. Objects that are read are shared: copy before you change one",
				m.Path, m.Object, m.ResourceVersion)
		}
	}
}

// Config is the door in memory: a client made from it talks to the fake without a network, so that it works inside a
// testing/synctest bubble. It is a configuration like any other, without a limit on the rate of requests.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://listwatchtest.invalid", Transport: memory{s}, QPS: -1}
}

// Listen is the door over HTTP: it makes the fake listen on a free port of this machine until the test ends, and
// returns the configuration of a client. Later calls return the same address. It does not work inside a
// testing/synctest bubble, where real connections count as running for ever.
func (s *Server) Listen() *rest.Config { return rest.CopyConfig(s.listen()) }

func (s *Server) startListening() *rest.Config {
	listener := httptest.NewServer(s)
	s.t.Cleanup(func() {
		s.end()
		listener.Close()
	})
	return &rest.Config{Host: listener.URL, QPS: -1}
}

// Kubeconfig makes the fake listen and returns the path of a kubeconfig file for it, which goes with the test: for
// kubectl, and for programs that are started with --kubeconfig.
func (s *Server) Kubeconfig() string {
	s.t.Helper()
	const name = "listwatchtest"
	document, err := json.Marshal(clientcmd.Config{ // JSON is YAML
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters:  []clientcmd.NamedCluster{{Name: name, Cluster: clientcmd.Cluster{Server: s.Listen().Host}}},
		AuthInfos: []clientcmd.NamedAuthInfo{{Name: name}},
		Contexts: []clientcmd.NamedContext{{Name: name, Context: clientcmd.Context{
			Cluster: name, AuthInfo: name, Namespace: "default",
		}}},
	})
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	if err == nil {
		err = os.WriteFile(path, document, 0o600)
	}
	if err != nil {
		s.t.Fatalf("listwatchtest: write a kubeconfig: %v", err)
	}
	return path
}

// ServeHTTP answers a request: it is logged, then faults have their say, then the server behind answers. Discovery is
// neither logged nor faulty.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, ok := readRequest(r)
	if !ok {
		s.origin.ServeHTTP(w, r)
		return
	}
	x := s.begin(w, r, request)
	defer s.finish(x)
	if !x.meetsFaults() {
		x.answer.ServeHTTP(x, x.request)
	}
	x.end()
}

func (s *Server) begin(w http.ResponseWriter, r *http.Request, request Request) *exchange {
	x := &exchange{ResponseWriter: w, server: s, answer: s.origin, Request: request}
	ctx, cancel := context.WithCancel(r.Context())
	x.cancel = cancel
	x.unhook = context.AfterFunc(s.closed, cancel)
	x.request = r.WithContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
	s.underWay[x] = struct{}{}
	s.broadcastLocked()
	return x
}

func (s *Server) finish(x *exchange) {
	x.unhook()
	x.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.underWay, x)
	s.broadcastLocked()
}

func (s *Server) broadcastLocked() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// How long the methods that wait do so before they fail the test: longer than anything takes over HTTP; and inside a
// bubble, where it costs nothing, longer than any backoff or watch of a client's.
const (
	patience         = time.Minute
	patienceInBubble = 6 * time.Hour
)

// patienceNow tells the two apart: the clock of a bubble starts in the year 2000, says testing/synctest, and others
// have passed that.
func patienceNow() time.Duration {
	if time.Now().Year() < 2010 {
		return patienceInBubble
	}
	return patience
}

// await blocks until condition holds, which is asked under the lock.
func (s *Server) await(what func() string, condition func() bool) {
	s.t.Helper()
	limit := patienceNow()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		s.mu.Lock()
		if condition() {
			s.mu.Unlock()
			return
		}
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			s.t.Fatalf("listwatchtest: waited %s for %s; the last requests:\n%s", limit, what(), s.log())
		}
	}
}

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
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
)

// Server is a fake API server for the collections that [Serve] puts on it, with one count of
// resource versions. It has two doors: [Server.Config] in memory, [Server.Listen] over HTTP.
// Clients see the same, and faults do the same, through both. It ends with its test.
//
// All methods are safe for concurrent use. Methods that can fail the test must be called from the
// test's goroutine, as testing.TB demands.
type Server struct {
	t       testing.TB
	options []watchcache.Option
	origin  *apiserver.Server

	// closed ends with the test. It is a context so that the contexts of requests can end with it.
	closed context.Context
	end    context.CancelFunc

	listen func() *rest.Config // starts listening only once

	mutations listwatch.Option // makes a write into a shared object fail the test

	mu       sync.Mutex // guards the next fields
	requests []Request
	underWay map[*exchange]struct{}
	faults   []*Fault
	changed  chan struct{} // closes at the next change of these fields; nil if no caller waits
}

// NewServer makes a fake without collections, which ends with t. The options configure the server
// behind it: the size of the window, the interval of bookmarks, the time for which a list waits for
// a future version.
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
		s.tellMissed()
		s.end()
		_ = origin.Shutdown(context.Background()) // it has no parked watch to wait for
	})
	return s
}

// reporter returns a function that fails the test for a mutation; nil in a benchmark, which would
// measure the search.
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
			s.t.Errorf("listwatchtest: %s was written into: %q, read at version %s. "+
				"Objects that are read are shared: copy before you change one",
				m.Path, m.Object, m.ResourceVersion)
		}
	}
}

// Config is the door in memory. A client made from it talks to the fake without a network, so it
// works inside a testing/synctest bubble. The configuration sets no limit on the rate of requests.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: "http://listwatchtest.invalid", Transport: memory{s}, QPS: -1}
}

// Origin is the server behind the fake, for collections whose writes and faults are the clients'
// alone: builtin.Serve adds all built-in kinds to it, and crd.Serve those of files. Requests for
// them are logged like all others.
func (s *Server) Origin() *apiserver.Server { return s.origin }

// Listen is the door over HTTP. The fake listens on a free port of this machine until the test
// ends; Listen returns a client's configuration. Later calls return the same address. It does not
// work inside a testing/synctest bubble, in which a real connection never counts as idle.
func (s *Server) Listen() *rest.Config { return rest.CopyConfig(s.listen()) }

func (s *Server) startListening() *rest.Config {
	listener := httptest.NewServer(s)
	s.t.Cleanup(func() {
		s.end()
		listener.Close()
	})
	return &rest.Config{Host: listener.URL, QPS: -1}
}

// Kubeconfig makes the fake listen and returns the path of a kubeconfig file, which is removed with
// the test. It serves kubectl, and programs that are started with --kubeconfig.
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

// ServeHTTP answers a request: it is logged, then faults act on it, then the server behind them
// answers. Discovery is neither logged nor faulty.
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

// The limits of the methods that wait. The first exceeds anything over HTTP. The second costs
// nothing in a bubble, and exceeds every backoff and watch of a client.
const (
	patience         = time.Minute
	patienceInBubble = 6 * time.Hour
)

// patienceNow relies on testing/synctest: the clock of a bubble starts in the year 2000.
func patienceNow() time.Duration {
	if time.Now().Year() < 2010 {
		return patienceInBubble
	}
	return patience
}

// await calls condition under the lock.
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

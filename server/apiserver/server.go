package apiserver

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/entrance"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// Server is an [http.Handler] that serves collections to Kubernetes clients: kubectl, client-go,
// and whatever speaks to an API server. [Serve] and [ServeCache] add collections, at any time. It
// starts no goroutines but one for each namespace that is being deleted.
//
// It answers requests to the hosts that it listens on, and writes and web sockets of pages of its
// own origin: see [Server.AllowHosts] and [Server.AllowOrigins]. Every user of the machine has
// access, or of the network, since there is no authentication and no authorization. Wrap the
// handler, or listen where only friends can reach it.
type Server struct {
	options  []watchcache.Option
	revision *watchcache.Revision
	gate     gate
	turns    turns

	mu        sync.RWMutex // guards the next fields
	resources []endpoint   // in the order of registration
	checks    []namedCheck // in the order of AddCheck
	notes     []func() map[string]string

	// closed ends with Close. It is a context so that those of requests can be joined with it.
	closed  context.Context
	close   context.CancelCauseFunc // call it with errClosed
	running entrance.Entrance       // of requests, and of namespaces that are emptied
}

// described is a resource or a subresource as discovery and OpenAPI have it.
type described struct {
	metav1.APIResource
	body     runtime.Object          // of a subresource with bodies of its own; else nil
	bodyKind schema.GroupVersionKind // of body
}

// endpoint is one served resource, whatever its Go type.
type endpoint interface {
	describe() []described
	groupVersionResource() schema.GroupVersionResource
	serve(call) error
	sample() any // an empty object
	schema() *spec.Schema
	health() Health
	probe(context.Context) Health // health, once the upstream has been asked
	samples(server string) iter.Seq[metrics.Sample]
	follow(server string) following.Changes
	// begin is called when it is added.
	begin(*Server)
	// replaces reports whether it takes the place of another endpoint.
	replaces() bool
	// end ends its watches.
	end()
	// release closes its cache, if that is the server's.
	release()
	// state reports whether there is an object of this name, and whether it is being deleted.
	state(namespace, name string) (found, ending bool)
	// newest is state, of the storage behind the cache.
	newest(namespace, name string) (found, ending bool, err error)
	// empties deletes the objects of a namespace, and counts those that are left.
	empties(ctx context.Context, namespace string, fresh bool, left *remains) error
}

// NewServer makes a server without collections. Options are for its collections; it fails on one
// out of range.
func NewServer(options ...watchcache.Option) (*Server, error) {
	if err := watchcache.Validate(options...); err != nil {
		return nil, err
	}
	s := &Server{options: options, revision: watchcache.NewRevision(), turns: newTurns()}
	s.closed, s.close = context.WithCancelCause(context.Background())
	return s, nil
}

// Serve adds an empty collection that is written through the server and through the result. It
// panics when the server is nil, the description is incomplete or the resource is served already:
// that is a mistake in the program.
func Serve[T store.Object](s *Server, resource Resource[T], options ...ServeOption) *collection.Collection[T] {
	if s == nil {
		panic("apiserver: Serve: the server is nil: make it with NewServer")
	}
	c, err := collection.New(resource.Kind, resource.Rules, s.revision, s.options...)
	if err != nil {
		panic(err)
	}
	ServeCollection(s, c, resource.View, append(slices.Clone(options), owned)...)
	return c
}

// ServeCollection adds a collection that has been made elsewhere, such as one with its storage in
// etcd. Reads are answered by its cache. The versions of its rules are served beside its own, each
// as a resource. It panics as [Serve] does.
func ServeCollection[T store.Object](s *Server, c *collection.Collection[T], view View[T], options ...ServeOption) {
	switch {
	case s == nil:
		panic("apiserver: ServeCollection: the server is nil: make it with NewServer")
	case c == nil:
		panic("apiserver: ServeCollection: the collection is nil")
	}
	main := newEndpoint(c.Cache(), c, view, options)
	s.add(main)
	for _, version := range c.Rules().Versions {
		s.add(newVersion(main, c, version))
	}
}

// ServeCache adds a collection that is read-only over HTTP, and that a reflector fills. While it is
// empty, requests get a 429 and come again. Name the reflector with [FilledBy], so that health
// checks tell how it does. It panics as [Serve] does.
func ServeCache[T store.Object](s *Server, cache *watchcache.Cache[T], view View[T], options ...ServeOption) {
	switch {
	case s == nil:
		panic("apiserver: ServeCache: the server is nil: make it with NewServer")
	case cache == nil:
		panic("apiserver: ServeCache: the cache is nil: make it with NewCache")
	}
	s.add(newEndpoint(cache, nil, view, options))
}

func (s *Server) add(e endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.begin(s)
	i := s.indexLocked(e.groupVersionResource())
	switch {
	case i < 0:
		s.resources = append(s.resources, e)
	case e.replaces():
		s.resources[i].end()
		s.resources[i] = e
	default:
		panic("apiserver: " + e.groupVersionResource().String() + " is served already")
	}
}

// Remove stops to serve a resource: its paths are not found any more, and its watches end in
// silence. The collection stays usable from Go, and is the caller's to close. It reports whether
// the resource was served.
func (s *Server) Remove(resource schema.GroupVersionResource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.indexLocked(resource)
	if i < 0 {
		return false
	}
	s.resources[i].end()
	s.resources = slices.Delete(s.resources, i, i+1)
	return true
}

// Serves reports whether a resource is served.
func (s *Server) Serves(resource schema.GroupVersionResource) bool {
	return s.endpoint(resource) != nil
}

// endpoint finds the endpoint of a resource, or nil.
func (s *Server) endpoint(resource schema.GroupVersionResource) endpoint {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if i := s.indexLocked(resource); i >= 0 {
		return s.resources[i]
	}
	return nil
}

func (s *Server) indexLocked(resource schema.GroupVersionResource) int {
	return slices.IndexFunc(s.resources, func(e endpoint) bool { return e.groupVersionResource() == resource })
}

// Close ends all watches and refuses new requests with 503. It does not wait: the http.Server's
// Shutdown does, and returns soon once Close has been called. Collections stay usable from Go.
func (s *Server) Close() { s.close(errClosed) }

// Shutdown is [Server.Close], and waits until all requests are answered. Each watch gets a proper
// end, after a last bookmark if it has asked for bookmarks. Then it closes the collections that
// [Serve] has made: see [collection.Collection.Close]. It returns the error of ctx if that ends
// first.
func (s *Server) Shutdown(ctx context.Context) error {
	s.close(errClosed)
	err := s.running.Wait(ctx)
	for _, e := range s.endpoints() {
		e.release()
	}
	return err
}

// ServeHTTP answers a request. A list that breaks off in the middle panics with
// [http.ErrAbortHandler], which net/http turns into a connection that ends too early, for the
// client to notice.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	patient := newPatientWriter(w)
	if !acceptsGzip(r) {
		s.serve(patient, r)
		return
	}
	c := &compressor{ResponseWriter: patient}
	s.serve(c, r)
	c.finish()
}

// serve answers a request. A watch runs only after the calls that prepared it have returned: its
// goroutine then needs a small stack while it waits.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if !s.admit(w, r) {
		return
	}
	defer s.running.Leave()
	if watch := s.begin(w, r); watch.run != nil {
		ctx, cancel := endedBy(r.Context(), watch.ended)
		defer cancel()
		watch.run(ctx)
	}
}

// preparedWatch is a watch that has begun and is still to run, until its resource is served no
// more. A closure around run could join the contexts, but would be one more frame on the stack.
type preparedWatch struct {
	run   func(context.Context) // nil if the answer is complete
	ended context.Context
}

// errClosed is the cause of the end of a closed server's watches.
var errClosed = errors.New("the server is closed")

// endedBy is ctx, canceled also when another context ends, and then for its cause.
func endedBy(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// admit lets a request begin, which leaves running later. Otherwise it has answered: to a guest of
// another origin, to a question for the server's health, and to all others once it is closed.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	if err := s.gate.check(r); err != nil {
		RespondError(w, err)
		return false
	}
	if IsHealthCheck(r) {
		ctx, cancel := endedBy(r.Context(), s.closed)
		defer cancel()
		s.serveHealth(w, r.WithContext(ctx), strings.Trim(r.URL.Path, "/"))
		return false
	}
	if s.closed.Err() != nil || !s.running.Enter() {
		RespondError(w, context.Canceled)
		return false
	}
	return true
}

// begin answers a request, but for the events of a watch.
func (s *Server) begin(w http.ResponseWriter, r *http.Request) (watch preparedWatch) {
	ctx, cancel := endedBy(r.Context(), s.closed)
	defer cancel()
	r = r.WithContext(ctx)
	resources := s.endpoints()
	t, ok := ParseTarget(r.URL.Path)
	if !ok {
		serveDiscovery(w, r, resources)
		return watch
	}
	for _, e := range resources {
		if e.groupVersionResource() == t.Resource {
			return s.answer(w, r, t, e.sample(), e.serve)
		}
	}
	if question, ok := findReview(t); ok {
		return s.answer(w, r, t, nil, question.serve)
	}
	RespondError(w, notFound(r.URL.Path))
	return watch
}

// endpoints are all served resources.
func (s *Server) endpoints() []endpoint {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.resources)
}

// answer has serve answer in the format that the client asks for, of those that objects like sample
// have. A watch is still to run.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, t Target, sample any, serve func(call) error) (watch preparedWatch) {
	r, cancel, err := bounded(r)
	if err != nil {
		RespondError(w, err)
		return watch
	}
	defer cancel()
	f, as, err := negotiate(r, sample)
	if err == nil {
		err = r.Context().Err()
	}
	if err == nil {
		var write turn
		defer func() { s.turns.give(write) }()
		err = serve(call{ResponseWriter: w, request: r, target: t, format: f, as: as, server: s, watch: &watch, turn: &write})
	}
	if err != nil {
		respondError(w, f, err)
	}
	return watch
}

func notFound(path string) error {
	return apierror.Refused(http.StatusNotFound, metav1.StatusReasonNotFound,
		"the server could not find the requested resource: "+strings.TrimSpace(path))
}

package relay

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/internal/entrance"
)

// Relay is an [http.Handler] that answers reads out of copies of an upstream, and passes other
// requests on to it. Make one with [New], and end it with [Relay.Shutdown].
type Relay struct {
	options
	upstream *upstream
	proxy    *proxy
	edge     *apiserver.Server
	guarded  http.Handler  // behind the edge's guard of hosts and origins
	reads    http.Handler  // behind the access control
	answered atomic.Uint64 // requests

	mu       sync.Mutex // guards the next fields, and those of copies that say so
	copies   map[schema.GroupVersionResource]*kindCopy
	endings  map[schema.GroupVersionResource]<-chan struct{} // closed with the newest that ended
	refusals map[schema.GroupVersionResource]uncopied
	work     entrance.Entrance

	over   context.Context // ends with Shutdown
	finish context.CancelFunc
}

// Open is the access control that lets every client read whatever the relay can read. It is for
// tests, and for a relay that only friends can reach.
func Open(next http.Handler) http.Handler { return next }

// New makes a relay of the API server that config leads to. Its copies are read under the
// credential of config; requests that are passed on have only their own.
//
// The access control decides which clients may read from copies. It answers the requests that it
// refuses, and calls next for the others. [Open] refuses none.
//
// Errors: an option out of range, and a config from which no client can be made. Nothing is asked
// of the upstream yet.
func New(config *rest.Config, access func(next http.Handler) http.Handler, list ...Option) (*Relay, error) {
	switch {
	case config == nil:
		return nil, errors.New("relay: New: the config is nil: load one from a kubeconfig")
	case access == nil:
		return nil, errors.New("relay: New: the access control is nil: give one, or Open")
	}
	o, err := newOptions(list)
	if err != nil {
		return nil, err
	}
	r := &Relay{
		options: o, copies: map[schema.GroupVersionResource]*kindCopy{}, endings: map[schema.GroupVersionResource]<-chan struct{}{},
		refusals: map[schema.GroupVersionResource]uncopied{},
	}
	r.over, r.finish = context.WithCancel(context.Background())
	if r.upstream, err = newUpstream(config, r.work.Go); err != nil {
		return nil, err
	}
	if r.edge, err = apiserver.NewServer(); err != nil {
		return nil, err
	}
	if r.proxy, err = newProxy(r.over, config, r.upstream.name, access); err != nil {
		return nil, err
	}
	r.edge.AddCheck("upstream", r.upstream.check)
	r.edge.AddNotes(r.refusalNotes)
	r.guarded = r.edge.Guard(http.HandlerFunc(r.route))
	r.reads = r.audited(access(http.HandlerFunc(r.serveRead)))
	return r, nil
}

// Upstream is the scheme and host of the upstream.
func (r *Relay) Upstream() string { return r.upstream.name }

// Server is the server that answers out of copies. It has the health of all copies, and takes the
// hosts and origins of clients. Do not serve collections on it.
func (r *Relay) Server() *apiserver.Server { return r.edge }

// ServeHTTP answers a request.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.guarded.ServeHTTP(w, req) }

// copiedKey is a read that a copy may answer, for the handler behind the access control.
type copiedKey struct{}

// copied is such a read, as it came: the access control may take its token away.
type copied struct {
	*kind
	header http.Header
}

func (r *Relay) route(w http.ResponseWriter, req *http.Request) {
	if err := ambiguous(req); err != nil {
		apiserver.RespondError(w, err)
		return
	}
	if apiserver.IsHealthCheck(req) {
		r.edge.ServeHTTP(w, req)
		return
	}
	if r.over.Err() != nil {
		apiserver.RespondError(w, errClosed)
		return
	}
	if k := r.kindFor(req); k != nil {
		r.reads.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), copiedKey{}, copied{k, req.Header})))
		return
	}
	r.proxy.ServeHTTP(w, req)
}

// kindFor is the kind whose copy may answer a request; nil if it is to be passed on. It is no part
// of route: an open watch would keep what it has on the stack, which doubled that of most.
func (r *Relay) kindFor(req *http.Request) *kind {
	asked, ok := readOf(req)
	if !ok || !r.inScope(asked) || asked.byName() && !r.copiesAlready(asked) {
		return nil
	}
	k := r.kindOf(req.Context(), asked.target.Resource)
	if k == nil || !asked.fits(k.APIResource) || !k.answers(asked) {
		return nil
	}
	return k
}

// serveRead answers out of the copy of a kind, or passes the read on.
func (r *Relay) serveRead(w http.ResponseWriter, req *http.Request) {
	auditorOf(req.Context()).admit()
	c, err := r.enter(req.Context().Value(copiedKey{}).(copied).kind)
	answered := false
	if err == nil {
		defer c.leave()
		answered, err = c.await(req.Context())
	}
	switch {
	case err != nil:
		apiserver.RespondError(w, err)
	case !answered:
		r.passOn(w, req)
	case !r.proxy.takes(req):
		r.answered.Add(1)
		r.edge.ServeHTTP(w, req)
	default:
		r.answered.Add(1)
		judged := newJudge(w, c.isGone)
		if r.edge.ServeHTTP(judged, req); judged.kept {
			// Over HTTP/2, the deadline of the refusal would cut a watch that is passed on.
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
			r.passOn(w, req)
		}
	}
}

// passOn sends a read to the upstream that a copy could not answer.
func (r *Relay) passOn(w http.ResponseWriter, req *http.Request) {
	auditorOf(req.Context()).leave()
	req = req.WithContext(req.Context())
	req.Header = req.Context().Value(copiedKey{}).(copied).header
	r.proxy.ServeHTTP(w, req)
}

// enter finds the copy of a kind, or starts it, and counts a reader.
func (r *Relay) enter(k *kind) (c *kindCopy, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c = r.copies[k.resource]; c == nil || c.triesAgainLocked() {
		if c, err = r.startLocked(k); err != nil {
			return nil, err
		}
	}
	c.enterLocked()
	return c, nil
}

// kindOf describes a resource; nil if the upstream does not say that it can be copied.
func (r *Relay) kindOf(ctx context.Context, resource schema.GroupVersionResource) *kind {
	r.mu.Lock()
	c := r.copies[resource]
	retries := c != nil && c.triesAgainLocked()
	r.mu.Unlock()
	if c != nil && !retries {
		return c.kind
	}
	found, by, ok := r.upstream.kind(ctx, resource)
	if !ok || !readable(found) {
		return nil
	}
	if err := r.mayCopy(resource, by); err != nil {
		r.noteRefusal(resource, err)
		return nil
	}
	release := r.upstream.release()
	if release == 0 && r.upstream.check(ctx) == nil {
		release = r.upstream.release()
	}
	return newKind(resource, found, release > 0 && release <= r.minor)
}

// scope is the scope of a resource; all of it if there are none.
func (r *Relay) scope(resource schema.GroupResource) (s Scope, ok bool) {
	for _, s := range r.scopes {
		if s.Resource == resource {
			return s, true
		}
	}
	return Scope{Resource: resource}, len(r.scopes) == 0
}

// copiesAlready reports whether a copy is there, or is wanted by its scope. A read of one object
// starts no copy of all others.
func (r *Relay) copiesAlready(asked read) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.scopes) > 0 || r.copies[asked.target.Resource] != nil
}

func (r *Relay) inScope(asked read) bool {
	s, ok := r.scope(asked.target.Resource.GroupResource())
	return ok && s.covers(asked)
}

// Shutdown refuses new requests with a 503, ends all watches properly, and then all copies. Streams
// that are passed on, such as logs and exec, are cut. It returns the error of ctx if that ends
// first. The Shutdown of the http.Server waits for other requests.
func (r *Relay) Shutdown(ctx context.Context) error {
	r.finish()
	err := r.edge.Shutdown(ctx)
	r.mu.Lock() // no copy starts any more
	for _, c := range r.copies {
		c.endLocked(ended, errClosed)
	}
	r.mu.Unlock()
	err = errors.Join(err, r.work.Wait(ctx))
	r.proxy.close()
	return err
}

// errClosed asks the client to come again, as the API server does: client-go's reflectors begin
// with a list after a refused watch, unless the answer has a Retry-After.
var errClosed = func() error {
	err := apierrors.NewServiceUnavailable("the relay is shutting down")
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}()

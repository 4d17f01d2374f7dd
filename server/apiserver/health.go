package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/tributary-go/tributary/internal/following"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/watchcache"
)

// ServeOption changes how one collection is served.
type ServeOption func(*serving)

// serving has the settings that a ServeOption changes.
type serving struct {
	follower Follower // nil: nothing is known of an upstream
	// refuse answers a watch of a version that is too old with a 410, and not within its stream.
	refuse   bool
	replaces bool
	readOnly bool
	owned    bool // the cache is the server's

	complete func(context.Context) error // of [EmptiesNamespaces]; nil without
}

func owned(s *serving) { s.owned = true }

// Follower keeps a cache equal to its upstream, and knows how well it does. A [reflector.Reflector]
// of any type is one, and so is an origin.Collection. If it also has a method Unreadable() error,
// as that has, each read is refused with that error while there is one.
type Follower interface{ Status() reflector.Status }

// unreadable is the error of each read, if the follower has one.
func (s serving) unreadable() error {
	if f, ok := s.follower.(interface{ Unreadable() error }); ok {
		return f.Unreadable()
	}
	return nil
}

// FilledBy names the follower that fills a cache: a cache is stale while its follower fails. By
// default a cache is stale only while it fails to be proven fresh: see [watchcache.WithUpstream].
//
// All clients see what the follower sees. A server whose lists depend on the user, as those of an
// aggregated API may, is none to fill a cache from.
func FilledBy(f Follower) ServeOption { return func(s *serving) { s.follower = f } }

// Replacing takes the place of a collection of the same resource. Watches of the old one end in
// silence: their clients find the new collection. Without it, to serve a resource twice is a
// mistake.
func Replacing() ServeOption { return func(s *serving) { s.replaces = true } }

// ReadOnly refuses the writes of clients with 405. The default is to take them.
func ReadOnly() ServeOption { return func(s *serving) { s.readOnly = true } }

// Health is the state of one collection.
type Health struct {
	Resource schema.GroupVersionResource
	// Ready: the cache has content. Until then its requests get a 429.
	Ready bool
	// Proof says whether a read without a version can be answered. While it fails, each such read
	// is an error, and the server is not ready.
	Proof watchcache.Proof
	// Stale: the content may be behind the upstream. Its proof or its follower has an error, or its
	// copy is not right, or not proven within three minutes: see [reflector.Status.Verdict].
	Stale bool
	// Verdict is that of the follower's cache, with a proof of the last three minutes;
	// [reflector.OK] without a follower. ProvenAt is the moment of that proof, and zero without
	// one.
	Verdict  reflector.Verdict
	ProvenAt time.Time
	// Since is when a stale copy was last known to be fresh; zero if it never was.
	Since time.Time
	// Class is why a copy is stale or not ready yet.
	Class reflector.Class
	// Err is the last error of the follower, or of the proof. It is not shown to clients.
	Err error
}

// silence is how old the last proof of a follower's copy may be before the copy counts as stale.
const silence = 3 * time.Minute

// String is one line for people, without the error.
func (h Health) String() string {
	why := ""
	if h.Class != "" && h.Class != reflector.OK {
		why = fmt.Sprintf(" (%s)", h.Class)
	}
	switch {
	case !h.Ready:
		return "not listed yet" + why
	case !h.Stale && h.Proof.State == watchcache.Unproven:
		return "ok, not proven fresh"
	case !h.Stale:
		return "ok"
	case h.Since.IsZero():
		return "stale" + why
	}
	return "stale since " + h.Since.UTC().Format(time.RFC3339) + why
}

func (h Health) name() string { return h.Resource.GroupResource().String() }

// answersReads reports whether reads without a version are answered.
func (h Health) answersReads() bool { return h.Ready && h.Proof.State != watchcache.Failing }

func (e *resourceEndpoint[T]) health() Health { return e.healthWith(e.cache.Proof()) }

func (e *resourceEndpoint[T]) probe(ctx context.Context) Health {
	return e.healthWith(e.cache.Probe(ctx))
}

func (e *resourceEndpoint[T]) healthWith(proof watchcache.Proof) Health {
	h := Health{
		Resource: e.groupVersionResource(), Ready: e.cache.WaitFor(context.Background(), "0") == nil,
		Proof: proof, Verdict: reflector.Verdict{Class: reflector.OK},
	}
	if e.serving.follower != nil {
		h.follow(e.serving.follower.Status())
	}
	if h.Err == nil && proof.State == watchcache.Failing {
		h.Err, h.Class, h.Since = proof.Err, classOf(proof.Err), proof.Since
	}
	h.Stale = h.Err != nil
	return h
}

// follow takes in what a follower says.
func (h *Health) follow(s reflector.Status) {
	if s.Class == reflector.CatchingUp { // a read without a version waits for a proof of its own
		s.Err, s.Class = nil, reflector.OK
	}
	h.Verdict, h.ProvenAt = s.Verdict(silence), s.ProvenAt
	switch h.Err, h.Class = s.Err, s.Class; {
	case h.Err == nil && h.Verdict.Err == nil:
		return
	case h.Err == nil:
		h.Err, h.Class = h.Verdict.Err, h.Verdict.Class
	}
	h.Since = s.ProvenAt
	if s.Err != nil && s.Since.Before(s.ProvenAt) {
		h.Since = s.Since // a healthy stream of a copy that lacks an object
	}
}

// classOf is the class of a proof that fails.
func classOf(err error) reflector.Class {
	if errors.Is(err, context.DeadlineExceeded) {
		return reflector.Silent
	}
	return reflector.Classify(err)
}

// isOnlyOld reports whether nothing is wrong but the age of the follower's proof, while the cache
// has a proof of its own.
func (h Health) isOnlyOld() bool {
	state := h.Verdict.State()
	return h.Proof.State == watchcache.Proven && h.Class == h.Verdict.Class &&
		(state == reflector.StateRestored || state == reflector.StateStale)
}

// Health is the state of each collection, in the order of registration. It does not block.
func (s *Server) Health() []Health {
	var all []Health
	for _, e := range s.endpoints() {
		all = append(all, e.health())
	}
	return all
}

// serveHealth answers /livez, /readyz and /healthz as the API server does: 200 and "ok", or 500
// and a line for each check. With ?verbose there are lines in any case. A stale copy is ready as
// long as it answers reads, and said to be stale.
func (s *Server) serveHealth(w http.ResponseWriter, r *http.Request, check string) {
	var lines bytes.Buffer
	failed := false
	say := func(ok bool, name, text string) {
		sign := '+'
		if !ok {
			sign, failed = '-', true
		}
		fmt.Fprintf(&lines, "[%c]%s %s\n", sign, name, text)
	}
	say(true, "ping", "ok")
	if check != "livez" {
		closed := s.closed.Err() != nil
		if closed {
			say(false, "shutdown", "failed: the server is closed")
		}
		for _, line := range s.readiness(r.Context()) {
			if !line.ready {
				line.text = "failed: " + line.text
			}
			say(line.ready, line.name, line.text)
		}
	}
	_, verbose := r.URL.Query()["verbose"]
	code, body := http.StatusOK, "ok"
	switch {
	case failed:
		code, body = http.StatusInternalServerError, lines.String()+check+" check failed\n"
	case verbose:
		body = lines.String() + check + " check passed\n"
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	respondBytes(w, "text/plain; charset=utf-8", code, []byte(body))
}

// IsHealthCheck reports whether a request asks for the health of a server, as kubelets do.
func IsHealthCheck(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		slices.Contains([]string{"healthz", "livez", "readyz"}, strings.Trim(r.URL.Path, "/"))
}

// healthFor is the health that a read depends on. A watch from the version that its client has
// shows no old state, so that the proof does not matter. To look at it would cost the upstream a
// question for each client that comes back.
func (e *resourceEndpoint[T]) healthFor(r watchcache.Request) Health {
	initial := r.SendInitialEvents != nil && *r.SendInitialEvents
	if r.Watch && r.ResourceVersion != "" && r.ResourceVersion != "0" && !initial {
		return e.healthWith(watchcache.Proof{State: watchcache.Proven})
	}
	return e.health()
}

const unprovenText = "this copy is not proven fresh: it may lack the newest writes"

// warnIfStale adds a Warning header to an answer out of a stale cache, and to an answer without a
// proof that asks for the newest state.
func (e *resourceEndpoint[T]) warnIfStale(c call, r watchcache.Request) {
	text := ""
	newest := r.ResourceVersion == "" && r.Continue == ""
	switch h := e.healthFor(r); {
	case newest && h.isOnlyOld():
		return // the answer is proven
	case h.Stale:
		text = h.name() + ": " + h.String()
	case h.Proof.State == watchcache.Unproven && newest:
		text = h.name() + ": " + unprovenText
	default:
		return
	}
	if text, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
		c.Header().Add("Warning", text)
	}
}

var table = metrics.NewTable([]string{"server", "group", "resource"},
	metrics.Gauge("tributary_apiserver_ready", "1 once the cache of a resource has been filled.", func(h Health) bool { return h.Ready }),
	metrics.Gauge("tributary_apiserver_stale", "1 while the cache of a resource may be behind its upstream.", func(h Health) bool { return h.Stale }),
	metrics.By("class", func(h Health) map[string]bool {
		if h.Verdict.Err == nil {
			return nil
		}
		return map[string]bool{string(h.Verdict.Class): true}
	}, metrics.Gauge("tributary_apiserver_not_right", "1 while the follower's cache is not healthy, or not proven within three minutes; the class says why.", metrics.Itself[bool])),
	metrics.Gauge("tributary_apiserver_proven_timestamp_seconds", "The moment of which the follower's cache is proven to be the upstream's state.", func(h Health) time.Time { return h.ProvenAt }),
	metrics.When(func(h Health) bool { return h.Err != nil },
		metrics.By("class", func(h Health) map[string]bool { return map[string]bool{string(h.Class): true} },
			metrics.Gauge("tributary_apiserver_failing", "1 while the follower of a resource has an error; the class says what.", metrics.Itself[bool]))),
	metrics.Gauge("tributary_apiserver_stale_since_timestamp_seconds", "When a stale cache was last known to be fresh.", func(h Health) time.Time { return h.Since }),
)

// Samples implements [metrics.Reporter]: the health of each collection, and the numbers of its
// cache. The name stands for the server.
func (s *Server) Samples(name string) iter.Seq[metrics.Sample] {
	var all []metrics.Sample
	for _, e := range s.endpoints() {
		all = slices.AppendSeq(all, e.samples(name))
	}
	return slices.Values(all)
}

// Causes implements [metrics.Explainer]: why collections are stale. The name of a copy is the
// server's, a slash and the resource.
func (s *Server) Causes(name string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, h := range s.Health() {
			if h.Err != nil && !yield(name+"/"+h.name(), h.Err) {
				return
			}
		}
	}
}

// Follow implements [metrics.Follower] for all collections, under the names that Causes gives them.
func (s *Server) Follow(name string) (changes func() iter.Seq[metrics.Change]) {
	return following.Many(func() map[endpoint]func() following.Changes {
		present := map[endpoint]func() following.Changes{}
		for _, e := range s.endpoints() {
			present[e] = func() following.Changes { return e.follow(name) }
		}
		return present
	})
}

func (e *resourceEndpoint[T]) follow(name string) following.Changes { return e.cache.Follow(name) }

func (e *resourceEndpoint[T]) samples(name string) iter.Seq[metrics.Sample] {
	h := e.health()
	return slices.Values(slices.AppendSeq(table(h, name, h.Resource.Group, h.Resource.Resource), e.cache.Samples(name)))
}

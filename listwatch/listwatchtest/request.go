package listwatchtest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/server/apiserver"
)

// Verb is the verb of a request, in the words of the API.
type Verb string

// The verbs.
const (
	Get              Verb = "get"
	List             Verb = "list"
	Watch            Verb = "watch"
	Create           Verb = "create"
	Update           Verb = "update"
	Patch            Verb = "patch"
	Delete           Verb = "delete"
	DeleteCollection Verb = "deletecollection"
)

// Request is one request that a client has made, whether or not it succeeded.
type Request struct {
	// Verb is the request's verb. A watch list is a Watch whose Options have SendInitialEvents.
	Verb Verb
	// Target is the resource, namespace, name and subresource in the path.
	apiserver.Target
	// Options are the parameters of a List, Watch or DeleteCollection.
	Options metav1.ListOptions
	// UserAgent names the client.
	UserAgent string
	// Time is the time of the request's arrival.
	Time time.Time
}

// isWatchList reports whether a watch sends the state first.
func (r Request) isWatchList() bool {
	return r.Verb == Watch && watchlist.Asked(r.Options)
}

// String is one line for messages, such as `watch pods rv=5 fields=spec.nodeName=n1`.
func (r Request) String() string {
	resource := r.Resource.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	parts := []string{string(r.Verb), resource}
	add := func(label, value string) {
		if value != "" {
			parts = append(parts, label+"="+value)
		}
	}
	add("namespace", r.Namespace)
	add("name", r.Name)
	add("rv", r.Options.ResourceVersion)
	add("match", string(r.Options.ResourceVersionMatch))
	add("labels", r.Options.LabelSelector)
	add("fields", r.Options.FieldSelector)
	if r.Options.Limit > 0 {
		add("limit", fmt.Sprint(r.Options.Limit))
	}
	if r.Options.Continue != "" {
		add("continue", "…")
	}
	if initial := r.Options.SendInitialEvents; initial != nil {
		add("initial", fmt.Sprint(*initial))
	}
	return strings.Join(parts, " ")
}

// The verbs by method, for a collection and for one object.
var (
	collectionVerbs = map[string]Verb{http.MethodGet: List, http.MethodPost: Create, http.MethodDelete: DeleteCollection}
	objectVerbs     = map[string]Verb{
		http.MethodGet: Get, http.MethodPut: Update, http.MethodPatch: Patch, http.MethodDelete: Delete,
	}
)

// readRequest parses a request; ok is false if it is not about a resource.
func readRequest(r *http.Request) (request Request, ok bool) {
	request = Request{UserAgent: r.UserAgent(), Time: time.Now()}
	if request.Target, ok = apiserver.ParseTarget(r.URL.Path); !ok {
		return request, false
	}
	request.Verb = collectionVerbs[r.Method]
	if request.Name != "" {
		request.Verb = objectVerbs[r.Method]
	}
	// The server behind refuses malformed options.
	query := r.URL.Query()
	_ = metav1.Convert_url_Values_To_v1_ListOptions(&query, &request.Options, nil)
	if r.Method == http.MethodGet && request.Options.Watch {
		request.Verb = Watch
	}
	return request, request.Verb != ""
}

// named reports whether verbs contains the verb or is empty.
func (r Request) named(verbs []Verb) bool { return len(verbs) == 0 || slices.Contains(verbs, r.Verb) }

// Requests returns the requests of these verbs so far, in the order of arrival. Without verbs, it
// returns all.
func (s *Server) Requests(verbs ...Verb) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requestsLocked(verbs)
}

func (s *Server) requestsLocked(verbs []Verb) (found []Request) {
	for _, r := range s.requests {
		if r.named(verbs) {
			found = append(found, r)
		}
	}
	return found
}

// AwaitRequests blocks until n requests of these verbs, or of any verb if none is named, have been
// made since the start. It returns them. It fails the test after a minute, or after six hours of a
// bubble's time.
func (s *Server) AwaitRequests(n int, verbs ...Verb) (found []Request) {
	s.t.Helper()
	what := func() string { return fmt.Sprintf("%d requests %v, and saw %d", n, verbs, len(s.Requests(verbs...))) }
	s.await(what, func() bool {
		found = s.requestsLocked(verbs)
		return len(found) >= n
	})
	return found
}

// AwaitWatches blocks until exactly n watches are open: answered, and neither cut, muted nor ended.
// It fails the test after a minute, or after six hours of a bubble's time.
func (s *Server) AwaitWatches(n int) {
	s.t.Helper()
	s.await(func() string { return fmt.Sprintf("%d watches that stand", n) }, func() bool {
		standing := 0
		for x := range s.underWay {
			if x.Verb == Watch && x.standing && !x.broken && !x.muted {
				standing++
			}
		}
		return standing == n
	})
}

// logged is the number of requests that a failure shows.
const logged = 20

func (s *Server) log() string {
	requests := s.Requests()
	var lines []string
	for _, r := range requests[max(0, len(requests)-logged):] {
		lines = append(lines, r.Time.Format(time.TimeOnly)+" "+r.String())
	}
	return strings.Join(lines, "\n")
}

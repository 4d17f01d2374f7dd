package leader

import (
	"fmt"
	"net/http"
	"strings"
)

// Gate refuses requests that write while this replica does not lead, with an error that names the
// lease. Give it to the Wrap of the rest.Config of all clients that write:
//
//	config.Wrap(election.Gate)
//
// So a call that ignores the end of its context writes nothing beside the next leader. What passes
// always: reads, the reviews of access, and the Lease of the election.
func (e *Election) Gate(next http.RoundTripper) http.RoundTripper { return &gate{e, next} }

type gate struct {
	election *Election
	next     http.RoundTripper
}

func (g *gate) RoundTrip(request *http.Request) (*http.Response, error) {
	if !g.election.writes(request) || g.election.Leads() {
		return g.next.RoundTrip(request)
	}
	if request.Body != nil {
		_ = request.Body.Close()
	}
	e := g.election
	return nil, fmt.Errorf("leader: %s %s is refused: this replica does not hold the lease %s/%s", request.Method, request.URL.Path, e.Namespace, e.Name)
}

// WrappedRoundTripper is how client-go finds the transport.
func (g *gate) WrappedRoundTripper() http.RoundTripper { return g.next }

// writes reports whether a request writes what the election is about.
func (e *Election) writes(request *http.Request) bool {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	path := request.URL.Path
	if strings.Contains(path, "/apis/authorization.k8s.io/") || strings.Contains(path, "/apis/authentication.k8s.io/") {
		return false
	}
	_, lease, ours := strings.Cut(path, "/apis/coordination.k8s.io/v1/namespaces/"+e.Namespace+"/leases")
	return !ours || lease != "" && lease != "/"+e.Name
}

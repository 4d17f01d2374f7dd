package relay_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// cleaning is a load balancer before an API server, which cleans paths.
func cleaning(t *testing.T, u *upstream) *rest.Config {
	t.Helper()
	address, err := url.Parse("http://" + u.address)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(address)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		decoded, err := url.PathUnescape(r.URL.Path)
		if err != nil {
			decoded = r.URL.Path
		}
		r.URL.Path, r.URL.RawPath = path.Clean(decoded), ""
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return &rest.Config{Host: front.URL, BearerToken: relayToken, QPS: -1}
}

// TestAPathIsReadInOneWay: a path that a server in front of the API server would clean is refused,
// so that no document's path leads to Secrets under the relay's credential.
func TestAPathIsReadInOneWay(t *testing.T) {
	u := newUpstream(t)
	u.create(t, "secrets", "ns", `{"metadata":{"name":"a"},"stringData":{"password":"hunter2"}}`)
	ask := underCertificate(t, cleaning(t, u))
	for _, path := range []string{
		"/openapi/../api/v1/secrets", "/apis/../api/v1/secrets", "/apis/../metrics", "/openapi/%2e%2e/api/v1/secrets",
		"/openapi/v3/..%2f..%2fapi/v1/secrets", "/openapi/%252e%252e/api/v1/secrets", "/openapi/v3/..;/..;/api/v1/secrets",
		"/openapi/.%2e/api/v1/secrets", "/api/./v1/secrets", "//api/v1/secrets", "/api//v1/secrets", "/api/v1/namespaces/ns%2Fsecrets",
		"/api/v1/namespaces/ns/pods/a/proxy/../../../secrets", "/api/v1/namespaces/ns/pods/a/proxy/..%2f..%2f..%2fsecrets",
	} {
		for _, token := range []string{"", clientToken} {
			code, body := ask("GET", path, token)
			require.Equal(t, http.StatusBadRequest, code, "%s: %s", path, body)
			require.NotContains(t, body, "hunter2")
		}
	}
	require.Empty(t, u.asked(func(r request) bool { return true }))
}

// TestDocumentsAreAnExactList: the relay lends its credential for these paths, and for no others.
func TestDocumentsAreAnExactList(t *testing.T) {
	u := newUpstream(t)
	ask := underCertificate(t, u.config(relayToken))
	for _, path := range []string{
		"/api", "/api/v1", "/apis", "/apis/", "/apis/apps", "/apis/example.com/v1", "/openapi/v2", "/openapi/v3",
		"/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1?hash=12AB", "/version",
	} {
		code, body := ask("GET", path, "")
		require.Equal(t, http.StatusOK, code, "%s: %s", path, body)
	}
	for _, r := range u.asked(func(r request) bool { return r.query != "" }) {
		require.Equal(t, "hash=12AB", r.query)
	}
	for _, path := range []string{
		"/openapi", "/openapi/v3/api/v1/secrets", "/openapi/v3/apis/apps/v1/deployments", "/openapi/secrets", "/metrics", "/logs", "/api/secrets", "/version/a",
	} {
		before := len(u.asked(func(request) bool { return true }))
		code, _ := ask("GET", path, "")
		require.Equal(t, http.StatusForbidden, code, path)
		require.Len(t, u.asked(func(request) bool { return true }), before, path)
	}
}

// TestConnectionHidesNoIdentity: a proxy drops the headers that Connection names, so that a request
// that impersonates a user would be that of the user who may impersonate.
func TestConnectionHidesNoIdentity(t *testing.T) {
	g := newRig(t)
	for _, hidden := range []string{"Impersonate-User", "close, impersonate-group", "Impersonate-Extra-Scopes", "Authorization", "X-Remote-User", "keep-alive,sec-websocket-protocol"} {
		answer := get(t, g.url+"/api/v1/namespaces/ns/pods/a", "Impersonate-User", "jane", "Connection", hidden)
		require.Equal(t, http.StatusBadRequest, answer.code, "%s: %s", hidden, answer.body)
	}
	require.Empty(t, g.upstream.asked(func(request) bool { return true }))
	require.Equal(t, http.StatusNotFound, get(t, g.url+"/api/v1/namespaces/ns/pods/a", "Impersonate-User", "jane", "Connection", "X-Hop").code)
	require.Equal(t, "jane", g.upstream.asked(func(request) bool { return true })[0].header.Get("Impersonate-User"))
}

package main

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/server/reviews"
)

// upstream answers reviews, and keeps the questions about rights. It knows alice, and lets her make
// the requests whose words are of an even length.
type upstream struct {
	asked []authorizationv1.SubjectAccessReviewSpec
}

func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(http.StatusCreated)
	if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
		var review authenticationv1.TokenReview
		err = json.Unmarshal(body, &review)
		if review.Spec.Token == "alice's" {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: "alice", Groups: []string{"dev"}, Extra: map[string]authenticationv1.ExtraValue{"a": {"b"}}}}
		}
		review.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
		_ = json.NewEncoder(answer).Encode(review)
		return answer.Result(), err
	}
	var review authorizationv1.SubjectAccessReview
	err = json.Unmarshal(body, &review)
	u.asked = append(u.asked, review.Spec)
	words := 0
	if a := review.Spec.ResourceAttributes; a != nil {
		words = len(a.Verb + a.Resource + a.Name)
	}
	review.Status.Allowed, review.Status.Reason = words%2 == 0, "odd"
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
	_ = json.NewEncoder(answer).Encode(review)
	return answer.Result(), err
}

// asAPIServer is access control of k8s.io/apiserver's own parts.
func asAPIServer(t testing.TB, u *upstream, behind http.Handler) http.Handler {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://upstream", Transport: u, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	require.NoError(t, err)
	once := &wait.Backoff{Steps: 1}
	who, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient: client.AuthenticationV1(), WebhookRetryBackoff: once,
	}.New()
	require.NoError(t, err)
	what, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), WebhookRetryBackoff: once,
	}.New()
	require.NoError(t, err)
	handler := filters.WithAuthorization(behind, what, scheme.Codecs)
	handler = filters.WithAuthentication(handler, who, filters.Unauthorized(scheme.Codecs), nil, nil)
	return filters.WithRequestInfo(handler, &request.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	})
}

// judged is how access control has judged a request.
type judged struct {
	asked  []authorizationv1.SubjectAccessReviewSpec
	passed int
	code   int
	status metav1.Status
}

func judge(t testing.TB, make func(*upstream, http.Handler) http.Handler, r *http.Request) (j judged) {
	t.Helper()
	u := &upstream{}
	handler := make(u, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { j.passed++ }))
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r.Clone(t.Context()))
	j.asked, j.code = u.asked, answer.Code
	if j.code != http.StatusOK {
		// Some of the API server's answers are plain text.
		_ = json.Unmarshal(answer.Body.Bytes(), &j.status)
	}
	for _, spec := range j.asked {
		if a := spec.ResourceAttributes; a != nil {
			normalize(a)
		}
	}
	return j
}

// normalize orders the values of a label selector, and drops requirements that an upstream finds
// invalid.
func normalize(a *authorizationv1.ResourceAttributes) {
	if a.LabelSelector != nil {
		for _, r := range a.LabelSelector.Requirements {
			slices.Sort(r.Values)
		}
	}
	if a.FieldSelector == nil {
		return
	}
	a.FieldSelector.Requirements = slices.DeleteFunc(a.FieldSelector.Requirements, func(r metav1.FieldSelectorRequirement) bool { return r.Key == "" })
	if len(a.FieldSelector.Requirements) == 0 {
		a.FieldSelector = nil
	}
}

// compare judges a request by both. Ours may refuse a path that no resource has.
func compare(t testing.TB, method, path, query, authorization string) (same bool) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Method, r.URL = method, &url.URL{Path: path, RawQuery: query}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	theirs := judge(t, func(u *upstream, behind http.Handler) http.Handler { return asAPIServer(t, u, behind) }, r)
	ours := judge(t, func(u *upstream, behind http.Handler) http.Handler {
		access, err := reviews.New(&rest.Config{Host: "http://upstream", Transport: u})
		require.NoError(t, err)
		return access.Handler(behind)
	}, r)
	name := method + " " + path + "?" + query + " " + authorization
	switch ours.code {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		require.Zero(t, ours.passed, name)
		require.Empty(t, ours.asked, name)
		return false
	case http.StatusUnauthorized:
		if !utf8.ValidString(authorization) { // theirs asks for another token
			return false
		}
	}
	require.Equal(t, theirs, ours, name)
	return true
}

var (
	segments = []string{"api", "apis", "v1", "apps", "v1", "pods", "namespaces", "namespaces", "n", "a", "b", "status", "finalize",
		"watch", "proxy", "log", "", "..", "%2f", "ä", "<b>", "metrics", "healthz"}
	parameters = []string{"watch", "watch=1", "watch=true", "watch=0", "watch=False", "watch=x", "watch=", "limit=x", "limit=5", "timeoutSeconds=-1",
		"resourceVersion=0", "resourceVersion=x", "fieldSelector=metadata.name%3Da", "fieldSelector=metadata.name%3D%3Db", "fieldSelector=metadata.name!%3Da",
		"fieldSelector=metadata.name%3Da%2Fb", "fieldSelector=metadata.name%3D..", "fieldSelector=metadata.name%3D", "fieldSelector=%3Dx",
		"fieldSelector=spec.nodeName%3Dn,metadata.name%3Da", "fieldSelector=a%5C%2Cb%3Dc%5C%3Dd", "fieldSelector=((", "fieldSelector=",
		"labelSelector=a%3Db", "labelSelector=a+in+(c,b,a),d+notin+(e),!f,g", "labelSelector=a%3E5,b%3C6", "labelSelector=a!%3Db", "labelSelector=((", "labelSelector=",
		"sendInitialEvents=true", "allowWatchBookmarks=x", "%zz", "fieldSelector=metadata.name%3D%C3%A4", "continue=x", "resourceVersionMatch=Exact"}
	methods        = []string{"GET", "GET", "GET", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "get", "PURGE"}
	authorizations = []string{"Bearer alice's", "Bearer alice's", "Bearer alice's", "bearer alice's x", "Bearer  alice's", "Bearer", "Bearer eve's", "Basic alice's", ""}
)

// silenceKlog has the API server's parts log nothing.
func silenceKlog(t testing.TB) {
	klog.SetLogger(logr.Discard())
	t.Cleanup(klog.ClearLogger)
}

// TestRequestsAreJudgedAsByTheAPIServer: the question about a client's right, and the answer, are
// those of k8s.io/apiserver's own filters, for random requests.
func TestRequestsAreJudgedAsByTheAPIServer(t *testing.T) {
	silenceKlog(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	t.Log("seed", seed)
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	same, passed := 0, 0
	for range 4000 {
		path := []string{"", []string{"api", "apis", "metrics"}[random.IntN(3)]}
		for range random.IntN(8) {
			path = append(path, pick(segments))
		}
		if random.IntN(3) > 0 { // mostly one that a client sends
			path = append([]string{"", "api", "v1", "namespaces", "n", "pods", "a", "status"}[:4+random.IntN(5)], path[:random.IntN(2)]...)
		}
		var query []string
		for range random.IntN(4) {
			query = append(query, pick(parameters))
		}
		if compare(t, pick(methods), strings.Join(path, "/"), strings.Join(query, "&"), pick(authorizations)) {
			same++
		} else {
			passed++
		}
	}
	t.Logf("%d judged alike, %d refused", same, passed)
	require.Greater(t, same, 2000)
}

// FuzzRequestsAreJudgedAsByTheAPIServer is the same for the requests that a fuzzer finds.
func FuzzRequestsAreJudgedAsByTheAPIServer(f *testing.F) {
	silenceKlog(f)
	for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/n/pods/p/status", "/apis/apps/v1/namespaces//deployments", "/api/v1/namespaces/n", "/metrics/"} {
		f.Add("GET", path, "watch=1&fieldSelector=metadata.name%3Da&labelSelector=a+in+(b)", "Bearer alice's")
	}
	f.Add("HEAD", "//api/v1//namespaces/a/status", "", "")
	f.Fuzz(func(t *testing.T, method, path, query, authorization string) {
		if strings.ContainsFunc(method, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return // net/http refuses it
		}
		compare(t, method, path, query, authorization)
	})
}

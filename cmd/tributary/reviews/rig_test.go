package reviews_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
)

// cluster is an upstream that answers reviews. It is an http.Handler, and a transport to itself.
type cluster struct {
	mu      sync.Mutex
	users   map[string]authenticationv1.UserInfo // by token
	allows  func(authorizationv1.SubjectAccessReviewSpec) (bool, string)
	aud     []string
	trouble http.HandlerFunc // answers in place of the cluster; nil: none
	cut     error            // of the transport
	tokens  []authenticationv1.TokenReviewSpec
	rights  []authorizationv1.SubjectAccessReviewSpec
}

// newCluster has two users that may do everything, by the tokens "alice's" and "bob's".
func newCluster() *cluster {
	return &cluster{
		users: map[string]authenticationv1.UserInfo{
			"alice's": {Username: "alice", UID: "1", Groups: []string{"dev", "system:authenticated"},
				Extra: map[string]authenticationv1.ExtraValue{"example.com/team": {"a", "b"}}},
			"bob's": {Username: "bob", UID: "2"},
		},
		allows: func(authorizationv1.SubjectAccessReviewSpec) (bool, string) { return true, "" },
	}
}

func (c *cluster) change(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// asked is how many reviews there were, of tokens and of rights.
func (c *cluster) asked() (tokens, rights int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tokens), len(c.rights)
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var tokens authenticationv1.TokenReview
	var rights authorizationv1.SubjectAccessReview
	isToken := r.URL.Path == "/apis/authentication.k8s.io/v1/tokenreviews"
	isRight := r.URL.Path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	c.mu.Lock()
	switch {
	case isToken && json.Unmarshal(body, &tokens) == nil:
		c.tokens = append(c.tokens, tokens.Spec)
	case isRight && json.Unmarshal(body, &rights) == nil:
		c.rights = append(c.rights, rights.Spec)
	default:
		c.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	trouble := c.trouble
	c.mu.Unlock()
	if trouble != nil {
		trouble(w, r)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	if isToken {
		tokens.Status.User, tokens.Status.Authenticated = c.users[tokens.Spec.Token], false
		_, tokens.Status.Authenticated = c.users[tokens.Spec.Token]
		tokens.Status.Audiences = c.aud
		_ = json.NewEncoder(w).Encode(tokens)
		return
	}
	rights.Status.Allowed, rights.Status.Reason = c.allows(rights.Spec)
	_ = json.NewEncoder(w).Encode(rights)
}

// RoundTrip answers without a network, so that a cluster may live in a bubble.
func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	cut := c.cut
	c.mu.Unlock()
	if cut != nil {
		return nil, cut
	}
	recorder := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.ServeHTTP(recorder, r)
	}()
	select {
	case <-done:
		return recorder.Result(), nil
	case <-r.Context().Done():
		<-done
		return nil, r.Context().Err()
	}
}

// hang is trouble of a cluster that is stopped.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// refuse is trouble of a cluster that answers with a code.
func refuse(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret body", code) }
}

func newConfig(c *cluster) *rest.Config { return &rest.Config{Host: "http://upstream", Transport: c} }

func newReviews(t testing.TB, c *cluster, options ...reviews.Option) *reviews.Reviews {
	t.Helper()
	r, err := reviews.New(newConfig(c), options...)
	require.NoError(t, err)
	return r
}

// passed is a handler behind the reviews that counts requests.
type passed struct {
	mu       sync.Mutex
	requests []*http.Request
}

func (p *passed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
	w.WriteHeader(http.StatusOK)
}

// get sends a request with a token through the reviews.
func get(r *reviews.Reviews, url, token string, headers ...string) *httptest.ResponseRecorder {
	return getIn(context.Background(), r, &passed{}, url, token, headers...)
}

func getIn(ctx context.Context, r *reviews.Reviews, next http.Handler, url, token string, headers ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	r.Handler(next).ServeHTTP(recorder, request)
	return recorder
}

func statusOf(t testing.TB, r *httptest.ResponseRecorder) metav1.Status {
	t.Helper()
	var s metav1.Status
	require.NoError(t, json.Unmarshal(r.Body.Bytes(), &s), "%s", r.Body)
	require.Equal(t, metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, s.TypeMeta)
	require.EqualValues(t, r.Code, s.Code)
	return s
}

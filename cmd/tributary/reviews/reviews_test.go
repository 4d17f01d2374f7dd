package reviews_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
)

const pods = "/api/v1/namespaces/n/pods"

// TestWhoMayReadWhat: an unknown user gets the API server's 401, and a user without the right its
// 403. Neither reaches the handler behind.
func TestWhoMayReadWhat(t *testing.T) {
	c := newCluster()
	c.users["nameless"] = authenticationv1.UserInfo{Groups: []string{"system:masters"}}
	c.users["nobody"] = authenticationv1.UserInfo{Username: "system:anonymous"}
	c.users["outside"] = authenticationv1.UserInfo{Username: "x", Groups: []string{"system:unauthenticated"}}
	c.allows = func(s authorizationv1.SubjectAccessReviewSpec) (bool, string) {
		return s.User == "alice", `RBAC: role.rbac.authorization.k8s.io "<r>" not found`
	}
	r := newReviews(t, c)
	const reason = `: RBAC: role.rbac.authorization.k8s.io "<r>" not found`
	for name, test := range map[string]struct {
		url, token string
		headers    []string
		code       int
		message    string
	}{
		"allowed":            {url: pods, token: "alice's", code: 200},
		"any case of Bearer": {url: pods, headers: []string{"Authorization", "bEaReR alice's"}, code: 200},
		"more words":         {url: pods, headers: []string{"Authorization", "Bearer alice's yes"}, code: 200},
		"no credential":      {url: pods, code: 401, message: "Unauthorized"},
		"wrong token":        {url: pods, token: "eve's", code: 401, message: "Unauthorized"},
		"no token":           {url: pods, headers: []string{"Authorization", "Bearer"}, code: 401, message: "Unauthorized"},
		"empty token":        {url: pods, headers: []string{"Authorization", "Bearer  alice's"}, code: 401, message: "Unauthorized"},
		"another scheme":     {url: pods, headers: []string{"Authorization", "Basic alice's"}, code: 401, message: "Unauthorized"},
		"no user name":       {url: pods, token: "nameless", code: 401, message: "Unauthorized"},
		"anonymous":          {url: pods, token: "nobody", code: 401, message: "Unauthorized"},
		"unauthenticated":    {url: pods, token: "outside", code: 401, message: "Unauthorized"},
		"two headers": {url: pods, token: "alice's", headers: []string{"Authorization", "Bearer bob's"}, code: 401,
			message: "Unauthorized: the request has more than one Authorization header"},
		"invalid UTF-8": {url: pods, token: "alice\xff", code: 401, message: "Unauthorized: the bearer token is not valid UTF-8"},
		"a long token": {url: pods, token: strings.Repeat("x", 64<<10+1), code: 401,
			message: "Unauthorized: the bearer token is longer than 64 KiB"},
		"impersonation": {url: pods, token: "alice's", headers: []string{"Impersonate-User", "root"}, code: 403,
			message: "requests with Impersonate-* headers are not answered here: send them to the API server"},
		"extra impersonation": {url: pods, token: "alice's", headers: []string{"Impersonate-Extra-A", ""}, code: 403,
			message: "requests with Impersonate-* headers are not answered here: send them to the API server"},
		"list in a namespace": {url: pods, token: "bob's", code: 403,
			message: `pods is forbidden: User "bob" cannot list resource "pods" in API group "" in the namespace "n"` + reason},
		"watch of all": {url: "/apis/apps/v1/deployments?watch=1", token: "bob's", code: 403,
			message: `deployments.apps is forbidden: User "bob" cannot watch resource "deployments" in API group "apps" at the cluster scope` + reason},
		"one object": {url: pods + "/p", token: "bob's", code: 403,
			message: `pods "p" is forbidden: User "bob" cannot get resource "pods" in API group "" in the namespace "n"` + reason},
		"a subresource": {url: pods + "/p/status", token: "bob's", code: 403,
			message: `pods "p" is forbidden: User "bob" cannot get resource "pods/status" in API group "" in the namespace "n"` + reason},
		"no resource": {url: "/metrics", token: "bob's", code: 403, message: `forbidden: User "bob" cannot get path "/metrics"` + reason},
		"like HTML": {url: "/api/v1/namespaces/n/pods/%3Cb%3E", token: "bob's", code: 403,
			message: `pods "<b>" is forbidden: User "bob" cannot get resource "pods" in API group "" in the namespace "n"` + reason},
		"metrics":        {url: "/metrics", token: "alice's", code: 200},
		"no such path":   {url: "/api/v1/watch/pods", token: "alice's", code: 404, message: "the server could not find the requested resource"},
		"empty segments": {url: "/api/v1/namespaces//secrets", token: "alice's", code: 404, message: "the server could not find the requested resource"},
		"a bad path":     {url: pods + "/%ff", token: "alice's", code: 400, message: "the path is not valid UTF-8"},
		"a bad selector": {url: pods + "?fieldSelector=metadata.name%3D%ff", token: "alice's", code: 400, message: "a selector is not valid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			behind := &passed{}
			answer := getIn(t.Context(), r, behind, test.url, test.token, test.headers...)
			require.Equal(t, test.code, answer.Code, "%s", answer.Body)
			if test.code == http.StatusOK {
				require.Len(t, behind.requests, 1)
				return
			}
			require.Empty(t, behind.requests)
			require.Equal(t, test.message, statusOf(t, answer).Message)
			require.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"))
		})
	}
}

// TestTheQuestionSaysAll that the API server would judge a direct request by.
func TestTheQuestionSaysAll(t *testing.T) {
	c := newCluster()
	r := newReviews(t, c)
	require.Equal(t, 200, get(r, pods+"?fieldSelector=spec.nodeName%3Dn1,metadata.name!%3Dx&labelSelector=a+in+(c,b),!d", "alice's").Code)
	require.Equal(t, 200, get(r, pods+"?watch=true&fieldSelector=metadata.name%3Dp", "bob's").Code)
	require.Equal(t, 200, get(r, "/api/v1/namespaces/n", "bob's").Code)
	require.Equal(t, 200, get(r, "/metrics", "bob's").Code)
	bob := authorizationv1.SubjectAccessReviewSpec{User: "bob", UID: "2", Groups: []string{"system:authenticated"}}
	named, namespace, path := bob, bob, bob
	named.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace: "n", Verb: "watch", Version: "v1", Resource: "pods", Name: "p",
		FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
			{Key: "metadata.name", Operator: metav1.FieldSelectorOpIn, Values: []string{"p"}}}},
	}
	namespace.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: "n", Verb: "get", Version: "v1", Resource: "namespaces", Name: "n"}
	path.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"}
	require.Equal(t, []authorizationv1.SubjectAccessReviewSpec{{
		User: "alice", UID: "1", Groups: []string{"dev", "system:authenticated"},
		Extra: map[string]authorizationv1.ExtraValue{"example.com/team": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "n", Verb: "list", Version: "v1", Resource: "pods",
			FieldSelector: &authorizationv1.FieldSelectorAttributes{Requirements: []metav1.FieldSelectorRequirement{
				{Key: "metadata.name", Operator: metav1.FieldSelectorOpNotIn, Values: []string{"x"}},
				{Key: "spec.nodeName", Operator: metav1.FieldSelectorOpIn, Values: []string{"n1"}},
			}},
			LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{
				{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: []string{"b", "c"}},
				{Key: "d", Operator: metav1.LabelSelectorOpDoesNotExist},
			}},
		},
	}, named, namespace, path}, c.rights)
	require.Equal(t, []authenticationv1.TokenReviewSpec{{Token: "alice's"}, {Token: "bob's"}}, c.tokens)
}

// TestAudiences: a token must be for one of them, and an upstream that knows no audiences accepts
// none.
func TestAudiences(t *testing.T) {
	for _, test := range []struct {
		of   []string
		code int
	}{{[]string{"other", "relay"}, 200}, {[]string{"other"}, 401}, {nil, 401}} {
		c := newCluster()
		c.aud = test.of
		r := newReviews(t, c, reviews.WithAudiences("relay", "site"))
		require.Equal(t, test.code, get(r, pods, "alice's").Code, test.of)
		require.Equal(t, []string{"relay", "site"}, c.tokens[0].Audiences)
	}
}

// TestOptions: one that cannot be used is named.
func TestOptions(t *testing.T) {
	for want, options := range map[string][]reviews.Option{
		"option 1 is nil":    {nil},
		"audience is empty":  {reviews.WithAudiences("a", "")},
		"WithRenewal(1ms)":   {reviews.WithRenewal(1e6)},
		"WithRefusal(-1ns)":  {reviews.WithRefusal(-1)},
		"WithHold(-1ns)":     {reviews.WithHold(-1)},
		"open absent.crt":    {reviews.WithClientCA("absent.crt")},
		"no certificate in ": {reviews.WithClientCA("doc.go")},
	} {
		_, err := reviews.New(newConfig(newCluster()), options...)
		require.ErrorContains(t, err, want)
		require.True(t, strings.HasPrefix(err.Error(), "reviews: "), err)
	}
	_, err := reviews.New(nil)
	require.ErrorContains(t, err, "the config is nil")
}

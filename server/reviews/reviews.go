package reviews

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/identity"
)

// Reviews is the access control of a copy, by the reviews of its cluster. It has no goroutine of
// its own, and needs no end: its memory of a watch ends with the watch. Make it with [New].
type Reviews struct {
	settings
	upstream  *upstream
	authority *authority // nil: no client certificates
	keys      keys
	tokens    *decisions[authenticationv1.UserInfo]
	rights    *decisions[string] // the upstream's reason
	watches   watches
}

// New makes the access control of clients, by the reviews of the API server that config names. The
// credential of config needs the rights of ClusterRole system:auth-delegator; New does not ask. It
// fails if config or an option cannot be used.
func New(config *rest.Config, options ...Option) (*Reviews, error) {
	s, err := newSettings(options)
	if err != nil {
		return nil, err
	}
	up, err := newUpstream(config)
	if err != nil {
		return nil, err
	}
	r := &Reviews{
		settings: s, upstream: up, keys: newKeys(),
		tokens: newDecisions(s, weighUser), rights: newDecisions(s, func(reason string) int { return len(reason) }),
		watches: watches{groups: map[key]*group{}},
	}
	if s.clientCA != "" {
		if r.authority, err = newAuthority(s.clientCA); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// weighUser is an estimate of a user's memory.
func weighUser(u authenticationv1.UserInfo) int {
	n := len(u.Username) + len(u.UID)
	for _, group := range u.Groups {
		n += len(group) + 16
	}
	for name, values := range u.Extra {
		n += len(name) + 48
		for _, value := range values {
			n += len(value) + 16
		}
	}
	return n
}

// Handler calls next for the requests that the upstream allows, and refuses all others. The context
// of a watch ends when its right does.
func (r *Reviews) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		asked, err := r.admit(request)
		switch {
		case err != nil:
			respond(w, request, err)
		case asked.attributes.isWatch():
			r.serveWatch(w, request, asked, next)
		default:
			next.ServeHTTP(w, withoutProtocolToken(request))
		}
	})
}

// access is a request that has been judged: the client, the attributes, and the judgement.
type access struct {
	credential credential
	attributes attributes
	judgement  judgement
}

// admit judges a request. An error is for its client.
func (r *Reviews) admit(request *http.Request) (a access, err error) {
	for header := range request.Header {
		if strings.HasPrefix(header, "Impersonate-") {
			return a, apierror.Refused(http.StatusForbidden, metav1.StatusReasonForbidden,
				"requests with Impersonate-* headers are not answered here: send them to the API server")
		}
	}
	if a.credential, err = credentialOf(request); err != nil {
		return a, unauthorized(err)
	}
	if a.attributes, err = attributesOf(request); err != nil {
		return a, err
	}
	a.judgement, err = r.judge(request.Context(), a.credential, a.attributes)
	return a, err
}

// judgement is the decisions that allow a request.
type judgement struct {
	until time.Time // it is to be judged again
	// token is nil for a client that its certificate identifies.
	token    *decision[authenticationv1.UserInfo]
	tokenKey key
	right    *decision[string]
	rightKey key
}

// judge asks for the user and the right, as far as they are not known. An error is for the client:
// 401, 403, or one that says why there is no decision.
func (r *Reviews) judge(ctx context.Context, c credential, a attributes) (j judgement, err error) {
	user, err := r.identify(ctx, c, &j)
	if err != nil {
		return j, err
	}
	identity.Note(ctx, user.Username)
	review := authorizationv1.SubjectAccessReview{
		TypeMeta: rightReview.typeMeta(),
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extraOf(user),
			ResourceAttributes: a.resource, NonResourceAttributes: a.other,
		},
	}
	body, err := json.Marshal(review)
	if err != nil {
		return j, err
	}
	ask := func(ctx context.Context) (reason string, allowed bool, err error) {
		var answer authorizationv1.SubjectAccessReview
		err = r.upstream.ask(ctx, rightReview, body, &answer)
		return answer.Status.Reason, answer.Status.Allowed && !answer.Status.Denied, err
	}
	j.rightKey = r.keys.of(body)
	j.right, err = r.rights.decide(ctx, question[string]{j.rightKey, len(body), ask})
	switch {
	case err != nil:
		return j, undecided(rightReview, err)
	case !j.right.granted:
		return j, a.forbidden(user.Username, j.right.answer)
	case j.right.expires.Before(j.until):
		j.until = j.right.expires
	}
	return j, nil
}

// identify finds the user: by the certificate, as the API server does first, or else by the token.
func (r *Reviews) identify(ctx context.Context, c credential, j *judgement) (user authenticationv1.UserInfo, err error) {
	if r.authority != nil && len(c.presented) > 0 {
		user, ends, err := r.authority.identify(c.presented)
		if user = authenticated(user); err == nil && isKnown(user) {
			j.until = time.Now().Add(spread(r.times.renewal))
			if ends.Before(j.until) {
				j.until = ends
			}
			return user, nil
		}
	}
	if c.token == "" || r.noTokens {
		return user, unauthorized(nil)
	}
	body, err := json.Marshal(authenticationv1.TokenReview{
		TypeMeta: tokenReview.typeMeta(),
		Spec:     authenticationv1.TokenReviewSpec{Token: c.token, Audiences: r.audiences},
	})
	if err != nil {
		return user, err
	}
	ask := func(ctx context.Context) (user authenticationv1.UserInfo, known bool, err error) {
		var answer authenticationv1.TokenReview
		if err := r.upstream.ask(ctx, tokenReview, body, &answer); err != nil {
			return user, false, err
		}
		user = authenticated(answer.Status.User)
		if !answer.Status.Authenticated || !isKnown(user) || !r.isFor(answer.Status.Audiences) {
			return authenticationv1.UserInfo{}, false, nil
		}
		return user, true, nil
	}
	j.tokenKey = r.keys.of(body)
	j.token, err = r.tokens.decide(ctx, question[authenticationv1.UserInfo]{j.tokenKey, len(body), ask})
	switch {
	case err != nil:
		return user, undecided(tokenReview, err)
	case !j.token.granted:
		return user, unauthorized(nil)
	}
	j.until = j.token.expires
	return j.token.answer, nil
}

// isFor reports whether a token is for this server. An upstream that names no audience knows none.
func (r *Reviews) isFor(audiences []string) bool {
	return len(r.audiences) == 0 || slices.ContainsFunc(audiences, func(audience string) bool { return slices.Contains(r.audiences, audience) })
}

const (
	anonymous            = "system:anonymous"
	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
)

// authenticated adds the group of all known users, as the API server does.
func authenticated(user authenticationv1.UserInfo) authenticationv1.UserInfo {
	if !slices.Contains(user.Groups, groupAuthenticated) {
		user.Groups = append(slices.Clip(user.Groups), groupAuthenticated)
	}
	return user
}

// isKnown is false for the anonymous user.
func isKnown(user authenticationv1.UserInfo) bool {
	return user.Username != "" && user.Username != anonymous && !slices.Contains(user.Groups, groupUnauthenticated)
}

func extraOf(user authenticationv1.UserInfo) map[string]authorizationv1.ExtraValue {
	if len(user.Extra) == 0 {
		return nil
	}
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	return extra
}

// serveWatch serves a watch until its right ends.
func (r *Reviews) serveWatch(w http.ResponseWriter, request *http.Request, a access, next http.Handler) {
	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()
	defer r.leave(r.begin(a, cancel))
	next.ServeHTTP(w, withoutProtocolToken(request.WithContext(ctx)))
}

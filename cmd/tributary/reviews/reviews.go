package reviews

import (
	"context"
	tls "crypto/x509"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	webhooktoken "k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/internal/identity"
)

// Reviews is the access control of a cache, by the reviews of its cluster. It has no goroutine of
// its own, and needs no end. Make it with [New].
type Reviews struct {
	settings
	asker       *asker
	authorities *authorities // nil: no client certificates
	certificate authenticator.Request
	tokens      []authenticator.Request
	rights      authorizer.UnconditionalAuthorizer
	watches     atomic.Int64
}

// New makes the access control of clients, by the reviews of the API server that config names. The
// credential of config needs the rights of ClusterRole system:auth-delegator; New does not ask. It
// fails if config or an option cannot be used.
func New(config *rest.Config, options ...Option) (*Reviews, error) {
	s, err := newSettings(options)
	switch {
	case err != nil:
		return nil, err
	case config == nil:
		return nil, errors.New("reviews: New: the config is nil: give that of the upstream")
	}
	r := &Reviews{settings: s}
	if s.clientCA != "" {
		if r.authorities, err = newAuthorities(s.clientCA); err != nil {
			return nil, fmt.Errorf("reviews: WithClientCA: %w", err)
		}
		r.certificate = group.NewAuthenticatedGroupAdder(x509.NewDynamic(r.authorities.verifyOptions, x509.CommonNameUserConversion))
	}
	if err := r.delegate(config); err != nil {
		return nil, fmt.Errorf("reviews: New: the config: %w", err)
	}
	return r, nil
}

// delegate joins the authenticators and the authorizer of k8s.io/apiserver. Their requests go
// through the asker, for the time while the upstream is away.
func (r *Reviews) delegate(config *rest.Config) error {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	r.asker = newAsker(transport, r.settings)
	web := &http.Client{Transport: r.asker}
	config = rest.CopyConfig(config)
	config.QPS = -1 // the asker has the bounds
	config.ContentConfig = rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"}
	tokens, err := authenticationclient.NewForConfigAndClient(config, web)
	if err != nil {
		return err
	}
	rights, err := authorizationclient.NewForConfigAndClient(config, web)
	if err != nil {
		return err
	}
	once := wait.Backoff{Steps: 1}
	r.rights, err = authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: rights, AllowCacheTTL: r.cached(), DenyCacheTTL: r.refusal, WebhookRetryBackoff: &once,
	}.New()
	if err != nil {
		return err
	}
	reviewed, err := webhooktoken.NewFromInterface(tokens, nil, once, 0, webhooktoken.AuthenticatorMetrics{
		RecordRequestTotal: func(context.Context, string) {}, RecordRequestLatency: func(context.Context, string, float64) {},
	})
	if err != nil {
		return err
	}
	remembered := cache.New(reviewed, false, r.cached(), r.refusal)
	r.tokens = []authenticator.Request{
		group.NewAuthenticatedGroupAdder(bearertoken.New(remembered)),
		group.NewAuthenticatedGroupAdder(websocket.NewProtocolAuthenticator(remembered)),
	}
	return nil
}

// Handler calls next for the requests that the upstream allows, and refuses all others. The context
// of a watch ends when its right does.
func (r *Reviews) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		allowed, err := r.judge(request)
		switch {
		case err != nil:
			respond(w, request, err)
		case allowed.verb == "watch":
			r.serveWatch(w, request, allowed, next)
		default:
			next.ServeHTTP(w, allowed.request)
		}
	})
}

// access is a request that the upstream allows.
type access struct {
	request *http.Request // without the token of a web socket
	verb    string
	ends    time.Time // of the client's certificate; zero: it has come with a token
}

// judge finds the user and asks for the right. An error is for the client: 401, 403, or one that
// says why there is no decision.
func (r *Reviews) judge(request *http.Request) (a access, err error) {
	if err := malformed(request); err != nil {
		return a, err
	}
	attributes, err := attributesOf(request)
	if err != nil {
		return a, err
	}
	a.verb, a.request = attributes.Verb, request.WithContext(request.Context())
	// The authenticators remove the token that they have read. The answer to a web socket must not
	// have it; a handler that passes the request on needs it in its header.
	a.request.Header = request.Header.Clone()
	if authorization, ok := request.Header["Authorization"]; ok {
		defer func() { a.request.Header["Authorization"] = authorization }()
	}
	ctx := request.Context()
	if len(r.audiences) > 0 {
		ctx = authenticator.WithAudiences(ctx, r.audiences)
	}
	if attributes.User, a.ends, err = r.identify(a.request.WithContext(ctx)); err != nil {
		return a, err
	}
	identity.Note(ctx, attributes.User.GetName())
	decision, reason, err := r.rights.Authorize(ctx, attributes)
	switch {
	case decision == authorizer.DecisionAllow:
		return a, nil
	case err != nil:
		return a, undecided(err)
	}
	return a, forbidden(attributes, reason)
}

// identify finds the user: by the certificate, as kube-apiserver does first, or else by a token.
func (r *Reviews) identify(request *http.Request) (found user.Info, ends time.Time, err error) {
	if r.certificate != nil {
		if answer, ok, err := r.certificate.AuthenticateRequest(request); ok && err == nil && isKnown(answer.User) {
			return answer.User, end(request.TLS.PeerCertificates), nil
		}
	}
	for _, token := range r.tokens {
		answer, ok, err := token.AuthenticateRequest(request)
		switch {
		case ok && err == nil && isKnown(answer.User):
			return answer.User, ends, nil
		case isUndecided(err):
			return nil, ends, undecided(err)
		}
	}
	return nil, ends, unauthorized("")
}

// end is when the first of the certificates is no longer valid.
func end(presented []*tls.Certificate) time.Time {
	first := slices.MinFunc(presented, func(a, b *tls.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	return first.NotAfter.Add(time.Nanosecond) // it is still valid at NotAfter itself
}

// isKnown is false for the anonymous user.
func isKnown(u user.Info) bool {
	return u.GetName() != "" && u.GetName() != user.Anonymous && !slices.Contains(u.GetGroups(), user.AllUnauthenticated)
}

// serveWatch serves a watch until its right ends. It looks at the right five times in a renewal,
// for the most part in memory, so that no decision in use is older than a renewal.
func (r *Reviews) serveWatch(w http.ResponseWriter, request *http.Request, a access, next http.Handler) {
	r.watches.Add(1)
	defer r.watches.Add(-1)
	ctx, cancel := context.WithCancel(a.request.Context())
	defer cancel()
	if !a.ends.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, a.ends)
		defer cancel()
	}
	every := r.look()
	var again *time.Timer
	again = time.AfterFunc(math.MaxInt64, func() {
		if ctx.Err() != nil {
			return
		}
		if _, err := r.judge(request); err != nil {
			cancel()
			return
		}
		again.Reset(every)
	})
	again.Reset(every)
	defer again.Stop()
	next.ServeHTTP(w, a.request.WithContext(ctx))
}

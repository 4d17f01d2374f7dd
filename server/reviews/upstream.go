package reviews

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/internal/causes"
)

// maxAnswer bounds the answer to a review.
const maxAnswer = 1 << 20

// upstream is the API server that answers reviews. Its requests are made without client-go's
// request builder: at a high verbosity that logs bodies, and so tokens.
type upstream struct {
	client *http.Client
	base   *url.URL
}

func newUpstream(config *rest.Config) (*upstream, error) {
	if config == nil {
		return nil, errors.New("reviews: New: the config is nil: give that of the upstream")
	}
	config = rest.CopyConfig(config)
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reviews: New: the config's host: %w", err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("reviews: New: the config's transport: %w", err)
	}
	return &upstream{base: base, client: &http.Client{
		Transport: transport,
		// A redirect would carry a token to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// failure is the error of a review that has no answer.
type failure struct {
	review reviewKind
	code   int // of the upstream's answer; 0: there was none
	err    error
}

func (f *failure) Error() string {
	switch f.code {
	case http.StatusForbidden:
		return fmt.Sprintf("the upstream lets this server create no %s: grant its user the verb create on %s, "+
			"as ClusterRole system:auth-delegator does", f.review.resource, f.review.groupResource())
	case http.StatusUnauthorized:
		return fmt.Sprintf("the upstream does not accept this server's own credential for %s: renew that of its kubeconfig",
			f.review.resource)
	}
	return fmt.Sprintf("%s: %s", f.review.resource, f.err)
}

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.err }

// away reports whether the upstream has not answered, rather than refused.
func (f *failure) away() bool {
	return f.code == 0 || f.code == http.StatusTooManyRequests || f.code >= http.StatusInternalServerError
}

// ofTheQuestion reports whether the question is at fault, and not the upstream.
func (f *failure) ofTheQuestion() bool {
	return f.code == http.StatusBadRequest || f.code == http.StatusUnprocessableEntity
}

// reviewKind is a kind of review.
type reviewKind struct {
	schema.GroupVersionKind
	resource string // the plural
}

var (
	tokenReview = reviewKind{authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), "tokenreviews"}
	rightReview = reviewKind{authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), "subjectaccessreviews"}
)

func (k reviewKind) path() string { return "/apis/" + k.Group + "/" + k.Version + "/" + k.resource }

func (k reviewKind) typeMeta() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: k.GroupVersion().String(), Kind: k.Kind}
}

func (k reviewKind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.resource}
}

// ask posts a review, and reads the answer. Every error is a *failure, and has nothing of the
// bodies.
func (u *upstream) ask(ctx context.Context, kind reviewKind, question []byte, answer runtime.Object) error {
	code, err := u.post(ctx, kind, question, answer)
	if err != nil && code == 0 && ctx.Err() == nil {
		// A server that has just restarted has cut the idle connections.
		code, err = u.post(ctx, kind, question, answer)
	}
	if err != nil {
		return &failure{kind, code, err}
	}
	return nil
}

func (u *upstream) post(ctx context.Context, kind reviewKind, question []byte, answer runtime.Object) (code int, err error) {
	target := *u.base
	target.Path = strings.TrimSuffix(target.Path, "/") + kind.path()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(question))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := u.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode/100 != 2 {
		return response.StatusCode, apierrors.NewGenericServerResponse(
			response.StatusCode, http.MethodPost, kind.groupResource(), "", "", 0, false)
	}
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(body, answer); err != nil || answer.GetObjectKind().GroupVersionKind() != kind.GroupVersionKind {
		return response.StatusCode, &causes.WrongAnswer{Err: errors.New("the answer is no review: is the upstream a Kubernetes API?")}
	}
	return response.StatusCode, nil
}

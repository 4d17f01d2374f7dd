package reviews

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	optionsscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/cert"

	"github.com/tributary-go/tributary/server/apiserver"
)

// mostToken is longer than any token that is in use: a user of some hundred groups has one of some
// 10 KiB.
const mostToken = 64 << 10

// malformed refuses requests that the question to the upstream could not repeat word by word.
func malformed(r *http.Request) error {
	for header := range r.Header {
		if strings.HasPrefix(header, "Impersonate-") {
			return refused(http.StatusForbidden, metav1.StatusReasonForbidden,
				"requests with Impersonate-* headers are not answered here: send them to the API server")
		}
	}
	query, err := r.URL.Query(), error(nil)
	for _, selector := range []string{query.Get("fieldSelector"), query.Get("labelSelector")} {
		if !utf8.ValidString(selector) {
			err = apierrors.NewBadRequest("a selector is not valid UTF-8")
		}
	}
	if !utf8.ValidString(r.URL.Path) {
		err = apierrors.NewBadRequest("the path is not valid UTF-8")
	}
	if target, ok := apiserver.ParseTarget(r.URL.Path); ok && target.Name == "" && err == nil && r.Method == http.MethodGet {
		// Else the code of kube-apiserver would log the query.
		var options internalversion.ListOptions
		if decoded := optionsscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &options); decoded != nil {
			err = apierrors.NewBadRequest("the query cannot be read: " + decoded.Error())
		}
	}
	authorization := r.Header["Authorization"]
	switch {
	case len(authorization) > 1:
		return unauthorized(": the request has more than one Authorization header")
	case len(authorization) == 0:
	case !utf8.ValidString(authorization[0]):
		return unauthorized(": the bearer token is not valid UTF-8")
	case len(authorization[0]) > mostToken+len("Bearer "):
		return unauthorized(": the bearer token is longer than 64 KiB")
	}
	return err
}

var infos = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

var errNoPath = refused(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")

// attributesOf derives the attributes by the code of kube-apiserver. It refuses a path that this
// server would route to another resource.
func attributesOf(r *http.Request) (*authorizer.AttributesRecord, error) {
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		return nil, errNoPath
	}
	routed, ok := apiserver.ParseTarget(r.URL.Path)
	judged := apiserver.Target{Namespace: info.Namespace, Name: info.Name, Subresource: info.Subresource}
	judged.Resource.Group, judged.Resource.Version, judged.Resource.Resource = info.APIGroup, info.APIVersion, info.Resource
	if routed.Name == "" { // kube-apiserver finds it in the field selector
		judged.Name = ""
	}
	// an object is in itself
	if routed.Resource.Resource == "namespaces" && routed.Namespace == "" {
		judged.Namespace = ""
	}
	switch {
	case ok != info.IsResourceRequest, ok && routed != judged:
		return nil, errNoPath
	case ok && info.Verb == "":
		return nil, refused(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			"the server does not allow this method on the requested resource")
	}
	attributes, err := filters.GetAuthorizerAttributes(request.WithRequestInfo(r.Context(), info))
	if err != nil {
		return nil, err
	}
	return attributes.(*authorizer.AttributesRecord), nil
}

// refused is an error with a Status.
func refused(code int, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}}
}

// unauthorized is kube-apiserver's 401, with a cause if the request itself is wrong.
func unauthorized(cause string) error { return apierrors.NewUnauthorized("Unauthorized" + cause) }

// forbidden is kube-apiserver's 403.
func forbidden(a authorizer.Attributes, reason string) error {
	return responsewriters.ForbiddenStatusError(a, reason)
}

// isUndecided reports whether the upstream has not said if a token is good.
func isUndecided(err error) bool {
	return errors.As(err, new(*failure)) || errors.Is(err, errBusy) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// undecided is the answer to a request that the upstream has not decided on.
func undecided(err error) error {
	var failed *failure
	switch {
	case errors.Is(err, errBusy):
		return later(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, 1,
			"too many clients wait for the upstream to decide: please come again")
	case !errors.As(err, &failed) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return later(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, 1, "the request has ended before the upstream decided")
	case failed == nil: // both allowed and denied
		return apierrors.NewInternalError(errors.New("the upstream's review contradicts itself"))
	case isAway(failed):
		return later(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, int32(retryEvery/time.Second),
			"the upstream does not answer, and so cannot say whether this is allowed ("+failed.kind+"): please come again")
	case failed.code == http.StatusUnauthorized, failed.code == http.StatusForbidden:
		return apierrors.NewInternalError(errors.New(failed.Error()))
	}
	return apierrors.NewInternalError(fmt.Errorf("the upstream refuses to review (%d for %s)", failed.code, failed.kind))
}

func later(code int, reason metav1.StatusReason, seconds int32, message string) error {
	err := refused(code, reason, message)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	return err
}

// respond answers with a Status, as kube-apiserver does.
func respond(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Cache-Control", "no-cache, private")
	if apierrors.IsUnauthorized(err) && r.ProtoMajor == 2 {
		// no connection of HTTP/2 is kept for an unknown client
		w.Header().Set("Connection", "close")
	}
	responsewriters.RespondWithError(w, r, err, scheme.Codecs)
}

// lookEvery is how often the file of authorities is read, at most.
const lookEvery = time.Second

// authorities are those of a file that may change.
type authorities struct {
	path string

	mu     sync.Mutex // guards the next fields
	looked time.Time
	roots  *x509.CertPool // of the last content that could be used
	err    error          // why the present content cannot be used
}

func newAuthorities(path string) (*authorities, error) {
	a := &authorities{path: path}
	a.verifyOptions()
	return a, a.err
}

// verifyOptions are at most lookEvery old.
func (a *authorities) verifyOptions() (x509.VerifyOptions, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.looked) >= lookEvery {
		a.looked = time.Now()
		var text []byte
		if text, a.err = os.ReadFile(a.path); a.err == nil {
			var roots *x509.CertPool
			if roots, a.err = cert.NewPoolFromBytes(text); a.err == nil {
				a.roots = roots
			} else {
				a.err = fmt.Errorf("%s has no certificate in PEM", a.path)
			}
		}
	}
	return x509.VerifyOptions{Roots: a.roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, a.roots != nil
}

func (a *authorities) problem() error {
	a.verifyOptions()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

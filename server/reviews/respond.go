package reviews

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/server/internal/apierror"
)

// unauthorized is the API server's 401, with a cause if the request itself is wrong.
func unauthorized(cause error) error {
	message := "Unauthorized"
	if cause != nil {
		message += ": " + cause.Error()
	}
	return apierrors.NewUnauthorized(message)
}

// sanitizer has no answer look like HTML, as on the API server.
var sanitizer = strings.NewReplacer(`&`, "&amp;", `<`, "&lt;", `>`, "&gt;")

// forbidden is the API server's 403.
func (a attributes) forbidden(user, reason string) error {
	var resource schema.GroupResource
	var name, text string
	if r := a.resource; r == nil {
		text = fmt.Sprintf("User %q cannot %s path %q", user, a.other.Verb, a.other.Path)
	} else {
		resource, name = schema.GroupResource{Group: r.Group, Resource: r.Resource}, r.Name
		target := r.Resource
		if r.Subresource != "" {
			target += "/" + r.Subresource
		}
		where := "at the cluster scope"
		if r.Namespace != "" {
			where = fmt.Sprintf("in the namespace %q", r.Namespace)
		}
		text = fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", user, r.Verb, target, r.Group, where)
	}
	text = sanitizer.Replace(text)
	if reason != "" {
		text += ": " + reason
	}
	return apierrors.NewForbidden(resource, name, errors.New(text))
}

// undecided is the answer to a request that the upstream has not decided on.
func undecided(kind reviewKind, err error) error {
	var failed *failure
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &failed):
		return later(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, 1, "the request has ended before the upstream decided")
	case errors.Is(err, errBusy):
		return later(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, 1,
			"too many clients wait for the upstream to decide: please come again")
	case errors.As(err, &failed) && !failed.away():
		text := failed.Error()
		if failed.code != http.StatusUnauthorized && failed.code != http.StatusForbidden {
			text = fmt.Sprintf("the upstream refuses to review (%d for %s)", failed.code, kind.resource)
		}
		return apierrors.NewInternalError(errors.New(text))
	}
	return later(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, int(retryEvery/time.Second),
		"the upstream does not answer, and so cannot say whether this is allowed ("+kind.resource+"): please come again")
}

func later(code int, reason metav1.StatusReason, seconds int, message string) error {
	err := apierror.Refused(code, reason, message)
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
	}
	return err
}

// respond answers with a Status.
func respond(w http.ResponseWriter, r *http.Request, err error) {
	var known *apierrors.StatusError
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.ErrStatus
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache, private")
	h.Set("X-Content-Type-Options", "nosniff")
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	if status.Code == http.StatusUnauthorized && r.ProtoMajor == 2 {
		// As the API server: no connection of HTTP/2 is kept for an unknown client.
		h.Set("Connection", "close")
	}
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // the client has gone, and cannot be told
}

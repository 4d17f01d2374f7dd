package apiserver

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/internal/apierror"
)

func notAcceptable(message string) error {
	return apierror.Refused(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, message)
}

// statusOf is the Status of an error for a client.
func statusOf(err error) *metav1.Status {
	var known apierrors.APIStatus
	var status metav1.Status
	switch {
	case errors.As(err, &known):
		status = known.Status()
	case errors.Is(err, context.DeadlineExceeded):
		status = apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0).ErrStatus
	case errors.Is(err, context.Canceled):
		status = apierrors.NewServiceUnavailable("the server is shutting down, or the client has gone").ErrStatus
		// client-go sends such a request again; after another 503, its reflectors list again.
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	default:
		status = apierrors.NewInternalError(err).ErrStatus
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &status
}

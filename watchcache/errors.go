package watchcache

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The errors here are those of the API server, so that clients classify them as they do its own: all are
// *apierrors.StatusError.

// tooOld is the 410 for a version whose events are gone; oldest is the oldest one that would still do.
func tooOld(version, oldest uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, oldest))
}

// tooLarge is the 504 for a version that has not been reached. Clients tell it from other timeouts by its cause.
func tooLarge(version, current uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// pageExpired is the 410 for a page of a state that is gone; fresh continues at the same key, in today's state.
func pageExpired(fresh string) error {
	err := apierrors.NewResourceExpired("the state that this continue token is a page of is gone: list again " +
		"without a token, or go on with the token in metadata.continue if an inconsistent list will do")
	err.ErrStatus.ListMeta.Continue = fresh
	return err
}

func notFilled(resource schema.GroupResource) error {
	return apierrors.NewTooManyRequests(fmt.Sprintf("the cache of %s has not been filled yet: try again", resource), 1)
}

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// refused is an error with an HTTP status for which apierrors has no constructor.
func refused(code int, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}}
}

func notAcceptable(accepted string) error {
	return refused(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"only the following media types are accepted: "+accepted)
}

func unsupportedMedia(accepted string) error {
	return refused(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format: accepted media types include "+accepted)
}

// statusOf is what an error looks like to a client.
func statusOf(err error) *metav1.Status {
	var known apierrors.APIStatus
	var status metav1.Status
	switch {
	case errors.As(err, &known):
		status = known.Status()
	case errors.Is(err, context.Canceled):
		status = apierrors.NewServiceUnavailable("the server is shutting down, or the client has gone").ErrStatus
	default:
		status = apierrors.NewInternalError(err).ErrStatus
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return &status
}

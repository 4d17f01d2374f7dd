// Package apierror has the API status errors that more than one room of the server answers with.
package apierror

import (
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BadRequest is a 400 with a message in the form of fmt.Sprintf.
func BadRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// OtherName is the 400 for a body with another name than the path.
func OtherName(name, inPath string) error {
	return BadRequest("the name of the object (%s) does not match the name on the URL (%s)", name, inPath)
}

// Refused is an error with an HTTP status that has no constructor in apierrors.
func Refused(code int, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}}
}

// UnsupportedMedia is a 415 that names the media types that would do.
func UnsupportedMedia(accepted ...string) error {
	return Refused(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		"the body of the request was in an unknown format - accepted media types include: "+strings.Join(accepted, ", "))
}

// Unclassified is a 500 without a reason, as the API server answers for an error that is no Status.
func Unclassified(format string, args ...any) error {
	return Refused(http.StatusInternalServerError, metav1.StatusReasonUnknown, fmt.Sprintf(format, args...))
}

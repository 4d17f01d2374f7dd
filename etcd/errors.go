package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Errors are those that an API server would answer with, so that whoever reads etcd classifies them
// as those of a server.

// errOvertaken: etcd has told of an event after it had promised that there was none.
var errOvertaken = expired("an event came after a progress notification that was newer (etcd issue 15220): list again")

// errOtherCluster: its revisions have nothing to do with those of before.
var errOtherCluster = expired("another etcd cluster answers than before, as after a restore: list again")

func expired(message string) *apierrors.StatusError { return apierrors.NewResourceExpired(message) }

// compacted is the 410 for a version with a compacted history.
func compacted(version int64) error {
	return expired(fmt.Sprintf("the resource version %d has been compacted: list again", version))
}

// pageCompacted is the 410 for a page of a state that is gone. The token in it goes on at the same
// key in today's state, for a reader that can do with an inconsistent list.
func pageCompacted(version int64, fresh string) error {
	err := expired(fmt.Sprintf("the continue token is of the resource version %d, which has been compacted: "+
		"list again without it, or with the token in metadata.continue if an inconsistent list will do", version))
	err.ErrStatus.ListMeta.Continue = fresh
	return err
}

// tooLarge is the 504 for a version that etcd has not reached. Clients tell it from other timeouts
// by its cause.
func tooLarge(version, current int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

func failed(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

// maxMessage bounds the text of an error of etcd or gRPC, which is logged.
const maxMessage = 512

// adviceForSpace: etcd's own sentence names no remedy.
const adviceForSpace = "compact and defragment it or raise --quota-backend-bytes, then etcdctl alarm disarm"

// StatusOf turns an error of etcd or gRPC into one that a reflector knows: an API status error,
// that of a connection, or that of ctx. Their texts name addresses and no keys.
func StatusOf(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, errStopped) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		return err
	}
	message, code := textOf(err), codeOf(err)
	if _, limited := ctx.Deadline(); limited && code == codes.DeadlineExceeded {
		return context.DeadlineExceeded // gRPC tells etcd of it, which may be the faster one
	}
	for _, known := range []error{rpctypes.ErrUserEmpty, rpctypes.ErrAuthFailed, rpctypes.ErrInvalidAuthToken} {
		if strings.HasSuffix(message, known.Error()) {
			return apierrors.NewUnauthorized(message)
		}
	}
	switch {
	case code == codes.Unauthenticated:
		return apierrors.NewUnauthorized(message)
	case code == codes.PermissionDenied, strings.HasSuffix(message, rpctypes.ErrPermissionDenied.Error()):
		return failed(http.StatusForbidden, metav1.StatusReasonForbidden, message)
	case strings.HasSuffix(message, rpctypes.ErrNoSpace.Error()):
		return apierrors.NewServiceUnavailable(message + ": " + adviceForSpace)
	case strings.HasSuffix(message, rpctypes.ErrTooManyRequests.Error()):
		return apierrors.NewTooManyRequests(message, 1)
	case strings.HasPrefix(message, "etcdserver: ") && (code == codes.Unavailable || errors.Is(rpctypes.Error(err), rpctypes.ErrAuthOldRevision)):
		return apierrors.NewServiceUnavailable(message)
	case code == codes.Unavailable && strings.Contains(message, "dial"):
		return &net.OpError{Op: "dial", Net: "tcp", Err: errors.New(message)}
	case code == codes.Unavailable, code == codes.Canceled:
		return disconnected{message}
	case code == codes.DeadlineExceeded:
		return apierrors.NewTimeoutError(message, 0)
	}
	return failed(http.StatusInternalServerError, metav1.StatusReasonInternalError, message)
}

// disconnected is a connection that was lost in the middle of an answer.
type disconnected struct{ message string }

func (d disconnected) Error() string { return "the connection to etcd was lost: " + d.message }
func (disconnected) Unwrap() error   { return io.ErrUnexpectedEOF }

func codeOf(err error) codes.Code {
	var known rpctypes.EtcdError
	if errors.As(err, &known) {
		return known.Code()
	}
	return status.Code(err)
}

func textOf(err error) string {
	text := rpctypes.ErrorDesc(err)
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}

func is(err, known error) bool { return errors.Is(rpctypes.Error(err), known) }

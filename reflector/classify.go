package reflector

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/tributary-go/tributary/internal/causes"
	"github.com/tributary-go/tributary/internal/sending"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
)

// Class is the meaning of an error, or of the end of a stream, for the copy. Its text is stable and
// has no spaces: it serves as a label.
type Class string

// The classes. machine.go has the request that follows each.
const (
	// OK is no error: a list that completed, or a watch that the server ended in its own time.
	OK Class = "ok"
	// Short is a watch that ended at once and without an event.
	Short Class = "short"
	// Disconnected is a connection that was cut, reset or timed out.
	Disconnected Class = "disconnected"
	// Unreachable: nothing answered. The connection was refused, or was closed before an answer, as
	// by a load balancer with no servers left.
	Unreachable Class = "unreachable"
	// TLS is a connection that client and server did not agree on. A certificate of either side is
	// expired, for another name or of an unknown authority, or one side speaks plain HTTP.
	TLS Class = "tls"
	// Credentials is a client that has no credentials to send: its plugin failed, or its token
	// cannot be read.
	Credentials Class = "credentials"
	// CatchingUp is a cache that is in touch with its server again after an interruption. What was
	// written meanwhile may be missing, until a proof is younger than the interruption and the
	// content was compared.
	CatchingUp Class = "catching_up"
	// Silent is a stream over which nothing came for the liveness period.
	Silent Class = "silent"
	// Expired is a resource version, or a continue token, that the server no longer has (410).
	Expired Class = "expired"
	// TooLarge is a resource version that the server has not reached yet.
	TooLarge Class = "version_too_large"
	// WentBack is a server with a newest version older than the one held: its etcd was restored
	// from a backup.
	WentBack Class = "version_went_back"
	// Throttled is a server that asks to come later (429).
	Throttled Class = "throttled"
	// ClientThrottled is a list that waits for the client's own rate limiter, for a second or more:
	// the program makes more requests than QPS and Burst of its rest.Config permit. No other
	// failure is shown meanwhile.
	ClientThrottled Class = "client_throttled"
	// ServerError is any other failure on the server's side (5xx).
	ServerError Class = "server_error"
	// Unauthorized is 401: no or wrong credentials.
	Unauthorized Class = "unauthorized"
	// Forbidden is 403: the credentials do not permit this list or watch.
	Forbidden Class = "forbidden"
	// NotFound is 404: the server does not know this resource, or no longer.
	NotFound Class = "not_found"
	// Refused is a request that the server finds wrong (400, 405, 406, 415, 422).
	Refused Class = "refused"
	// WrongAnswer is an answer that no Kubernetes API gives to this request: a page of HTML, other
	// JSON, another kind, a list without an end, a loop of redirects.
	WrongAnswer Class = "wrong_answer"
	// Incomplete is a watch list that ended, or changed its nature, before its initial events were
	// complete.
	Incomplete Class = "incomplete"
	// Undecodable is an object or event that could not be used.
	Undecodable Class = "undecodable"
	// Shrunk is a list of fewer than half of the objects held, at a version that is not provably
	// newer. A second answer must agree before anything is removed.
	Shrunk Class = "shrunk"
	// Unplaced is an event with a resource version that contradicts the versions of the stream.
	Unplaced Class = "unplaced"
	// StoreError is a change that the store did not take.
	StoreError Class = "store_error"
	// Unknown is an error of another kind, from a ListerWatcher that is not backed by an API
	// server.
	Unknown Class = "unknown"
)

// fault is an error of the reflector's own, which knows its class.
type fault struct {
	class Class
	text  string
	err   error // behind it; nil if there is none
}

func (f *fault) Error() string {
	if f.err == nil {
		return f.text
	}
	return f.text + ": " + f.err.Error()
}

func (f *fault) Unwrap() error { return f.err }

var (
	errDoubted    = &fault{class: OK, text: "the watch was ended for a relist"}
	errCatchingUp = &fault{class: CatchingUp, text: "the watch was interrupted, and nothing proves yet that no change was missed"}
	errUnproven   = &fault{class: OK, text: "no probe can prove the copy, and so a list does"}
	errNoVersion  = &fault{class: WentBack, text: "the list has no resource version, and the copy has one: an empty cache between client and server?"}
)

func storeError(err error) error { return &fault{StoreError, "the store refused a change", err} }

// historyError is an object that shows another history.
func historyError(key, why string) error {
	return &fault{class: History, text: key + " contradicts the copy: " + why + ": another cluster answers, or one that was restored"}
}

// driftError is a difference from the server under equal versions.
func driftError(err error) error { return &fault{Drift, "the copy differs from the server", err} }

// throttledAfter is the wait from which on Status shows it. Shorter ones are the limiter's daily
// work.
const throttledAfter = time.Second

// throttled is the error of a wait for the client's limiter; nil if there is none worth showing.
func throttled(w *sending.Wait) error {
	if w == nil || w.For != sending.Limiter || time.Since(w.Since) < throttledAfter {
		return nil
	}
	return &fault{class: ClientThrottled, text: fmt.Sprintf("a LIST has waited since %s for the client's own rate limiter (rest.Config.QPS is %v): "+
		"raise QPS and Burst, or list with fewer clients", w.Since.Format(time.TimeOnly), w.QPS)}
}

// Classify returns the class of an error of a [listwatch.ListerWatcher], and [OK] for nil: the one
// place that tells errors apart. Wrapped errors have the class of the error that they wrap.
// Classify is safe for concurrent use.
func Classify(err error) Class {
	if err == nil { // before anything is allocated
		return OK
	}
	var own *fault
	switch {
	case errors.Is(err, stream.ErrDeadline):
		return OK
	case errors.Is(err, stream.ErrWentBack):
		return WentBack
	case errors.As(err, &own):
		return own.class
	case errors.As(err, new(*listwatch.DecodeError)):
		return Undecodable
	case errors.Is(err, stream.ErrUnplaced):
		return Unplaced
	case errors.Is(err, stream.ErrSilent):
		return Silent
	case errors.Is(err, stream.ErrIncomplete):
		return Incomplete
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return classifyStatus(err, int(status.Status().Code))
	}
	return classifyNetwork(err)
}

func classifyStatus(err error, code int) Class {
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), code == http.StatusGone:
		return Expired
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return TooLarge
	case apierrors.IsTooManyRequests(err):
		return Throttled
	case apierrors.IsUnauthorized(err):
		return Unauthorized
	case apierrors.IsForbidden(err):
		return Forbidden
	case apierrors.IsNotFound(err):
		return NotFound
	case code >= 500:
		return ServerError
	case code >= 400:
		return Refused
	case code >= 300: // a redirect that leads nowhere
		return WrongAnswer
	}
	return ServerError
}

func classifyNetwork(err error) Class {
	var operation *net.OpError
	var request *url.Error // of sending a request; reading its answer fails with another error
	var name *net.DNSError
	var network net.Error
	var own *causes.Credentials
	switch {
	case errors.As(err, &own):
		return Credentials
	case errors.As(err, new(*causes.WrongAnswer)):
		return WrongAnswer
	case isTLS(err):
		return TLS
	case isReset(err):
		return Disconnected
	case errors.As(err, &operation) && operation.Op == "dial", errors.As(err, &name):
		return Unreachable
	case errors.As(err, &operation), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.As(err, &network) && network.Timeout(), utilnet.IsHTTP2ConnectionLost(err), utilnet.IsProbableEOF(err):
		if errors.As(err, &request) && !request.Timeout() {
			return Unreachable
		}
		return Disconnected
	}
	return Unknown
}

// isReset reports whether the peer has ended an HTTP/2 stream, or its connection, out of turn. Go's
// servers and proxies do so where they cut a connection of HTTP/1.1, such as that of a request that
// has lasted too long: it is the same event, and no answer such as a 5xx. The peer is there, so it
// is never Unreachable: a LIST may follow a watch list that was reset.
func isReset(err error) bool {
	return errors.As(err, new(http2.StreamError)) || errors.As(err, new(http2.ConnectionError))
}

// isTLS reports whether a connection was not made for a reason of TLS. A server that answers the
// handshake with an internal error is out of order, and the alert that ends a stream is as good as
// its loss.
func isTLS(err error) bool {
	var request *url.Error
	var untrusted *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert *net.OpError
	switch {
	case errors.As(err, &untrusted), errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return true
	case errors.As(err, &request) && errors.As(err, &alert) && alert.Op == "remote error":
		return alert.Err.Error() != "tls: internal error"
	}
	return false
}

package listwatch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/causes"
	"github.com/tributary-go/tributary/internal/wire"
)

// DecodeError is one object of a LIST, or one event of a WATCH, that cannot be used: malformed, of
// another kind, or of an unknown event type. The stream around it is whole and goes on. A copy must
// be assumed to differ from the server's state until the next list.
type DecodeError struct {
	Op     string // "list" or "watch"
	Event  string // the event type of a watch; "unknown" if it is not a defined type
	Object string // "namespace/name", if it could be read
	Err    error
}

func (e *DecodeError) Error() string {
	what := "an object"
	if e.Object != "" {
		what = "object " + e.Object
	}
	if e.Event != "" {
		what = e.Event + " event of " + what
	}
	return fmt.Sprintf("%s: %s cannot be used: %v", e.Op, what, e.Err)
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

var (
	errPage              = answersWith("a page of HTML")
	errNoEncoding        = answersWith("neither JSON nor protobuf")
	errNoBody            = &causes.WrongAnswer{Err: fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, answersWith("an empty body"))}
	errNoList            = answersWith("JSON that is no list")
	errNoEvent           = answersWith("JSON that is no event")
	errNotHTTP           = answersWith("bytes that are not HTTP")
	errRedirects         = answersWith("ten redirects in a row")
	errNoProtobuf        = wrongAnswer("the server sent protobuf, which was not asked for and which this type has no code for")
	errNoKind            = errors.New("the object has no kind")
	errNotObject         = errors.New("the object is not a JSON object")
	errUnknownEvent      = errors.New("only ADDED, MODIFIED, DELETED, BOOKMARK and ERROR are defined")
	errUndecodableStatus = errors.New("the server reported an error that cannot be decoded")
	errNoName            = errors.New("the object has no name")
)

func wrongAnswer(text string) error { return &causes.WrongAnswer{Err: errors.New(text)} }

// answersWith is the error of an address that is probably not that of a Kubernetes API.
func answersWith(something string) error {
	return wrongAnswer("this address answers with " + something +
		", not as a Kubernetes API does: check the URL, and the proxies before it")
}

func tooLarge(limit int) error {
	return wrongAnswer(fmt.Sprintf("one object is larger than the limit of %d MiB: the stream is broken, or not a Kubernetes API server's", limit>>20))
}

func wrongKind(got, want string) error {
	return fmt.Errorf("the object is a %s, not a %s", got, want)
}

func wrongList(got, want string) error {
	return wrongAnswer(fmt.Sprintf("the answer is a %s, not a %s: compare the resource with the Go type", got, want))
}

// broken names the end of a stream that cannot be read on.
func broken(err error) error {
	switch {
	case errors.Is(err, wire.ErrJSON):
		return answersWith("malformed JSON")
	case errors.Is(err, wire.ErrProtobuf):
		return answersWith("malformed protobuf")
	}
	return err
}

// withoutBody removes response bodies from errors, and cuts the texts of a Status. A client-go
// error for a non-Status answer keeps its code, reason and Retry-After. Some errors of net/http
// quote an answer that is not HTTP.
func withoutBody(err error) error {
	var sent *url.Error
	if errors.As(err, &sent) && quotes(sent.Err.Error()) {
		return explain(sent)
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return err
	}
	if !apierrors.IsUnexpectedServerError(err) {
		if short := bounded(status.ErrStatus); short != nil {
			return &apierrors.StatusError{ErrStatus: *short}
		}
		return err
	}
	if wantsHTTPS(status.ErrStatus) {
		return errWantsHTTPS
	}
	code := int(status.ErrStatus.Code)
	var resource schema.GroupResource
	retryAfter := 0
	if details := status.ErrStatus.Details; details != nil {
		resource = schema.GroupResource{Group: details.Group, Resource: details.Kind}
		retryAfter = int(details.RetryAfterSeconds)
	}
	clean := apierrors.NewGenericServerResponse(code, "get", resource, "", "", retryAfter, true)
	clean.ErrStatus.Message = fmt.Sprintf("the server answered %d %s without a Status", code, http.StatusText(code))
	return clean
}

// quotes recognises the errors of net/http that quote the answer; they have no types.
func quotes(message string) bool {
	return strings.Contains(message, "malformed HTTP") || strings.Contains(message, "malformed MIME") ||
		strings.Contains(message, "Location header") ||
		strings.Contains(message, "transport connection broken") && strings.Contains(message, `"`)
}

// withoutValues describes a JSON error by field and position: the decoder's own errors may quote
// values, and values may be secrets.
func withoutValues(err error) error {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		kind, _, _ := strings.Cut(mismatch.Value, " ")
		if mismatch.Field == "" {
			return fmt.Errorf("the object is a JSON %s", kind)
		}
		return fmt.Errorf("field %s is a JSON %s, which does not fit %s", mismatch.Field, kind, mismatch.Type)
	}
	if syntax, offset := kjson.SyntaxErrorOffset(err); syntax {
		return fmt.Errorf("malformed JSON at byte %d of the object", offset)
	}
	return errors.New("a field has a value that its type does not take")
}

// statusError returns the error of a Status from a stream.
func statusError(status *metav1.Status) error {
	if status.Status == "" && status.Code == 0 && status.Reason == "" {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "the server reported an error without saying which",
		}}
	}
	if short := bounded(*status); short != nil {
		status = short
	}
	return &apierrors.StatusError{ErrStatus: *status}
}

// Bounds of a Status in an error: errors are logged, and kept in a reflector's status.
const (
	maxMessage = 512 // bytes of a message; an API server's are shorter
	maxWord    = 253 // bytes of a reason, name or field; in the API they are DNS names at most
	maxCauses  = 16
)

// bounded returns a shortened copy of a Status that exceeds the bounds, and nil for any other. The
// copy keeps nothing of the original's memory.
func bounded(status metav1.Status) *metav1.Status {
	s := status.DeepCopy()
	s.ListMeta = metav1.ListMeta{}
	long := cut(&s.Message, maxMessage)
	long = cut(&s.Status, maxWord) || long
	long = cut((*string)(&s.Reason), maxWord) || long
	if d := s.Details; d != nil {
		for _, word := range []*string{&d.Name, &d.Group, &d.Kind, (*string)(&d.UID)} {
			long = cut(word, maxWord) || long
		}
		if len(d.Causes) > maxCauses {
			d.Causes, long = slices.Clone(d.Causes[:maxCauses]), true
		}
		for i := range d.Causes {
			cause := &d.Causes[i]
			long = cut((*string)(&cause.Type), maxWord) || long
			long = cut(&cause.Message, maxMessage) || long
			long = cut(&cause.Field, maxWord) || long
		}
	}
	if !long {
		return nil
	}
	return s
}

// cut shortens a text, appends its length, and reports whether it was too long.
func cut(text *string, limit int) bool {
	if len(*text) <= limit {
		return false
	}
	*text = fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8((*text)[:limit], ""), len(*text))
	return true
}

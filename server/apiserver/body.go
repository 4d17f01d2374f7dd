package apiserver

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/internal/apierror"
)

// maxBody bounds the body of a request, as in the API server.
const maxBody = 3 << 20

// readBody reads the bounded body of a write, and waits for its turn: 413 beyond the bound, 429 if
// too many writes are under way.
func readBody(c call) ([]byte, error) {
	connection := http.NewResponseController(c.ResponseWriter)
	_ = connection.SetReadDeadline(time.Now().Add(bodyPatience)) // where there are deadlines
	body, err := io.ReadAll(http.MaxBytesReader(innermost(c.ResponseWriter), c.request.Body, maxBody))
	_ = connection.SetReadDeadline(time.Time{})
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return nil, apierrors.NewRequestEntityTooLargeError("limit is 3 MiB")
	case err != nil:
		return nil, apierror.BadRequest("the body of the request could not be read: %v", err)
	}
	if *c.turn == 0 {
		*c.turn, err = c.server.turns.take(c.request.Context(), len(body))
	}
	return body, err
}

// bodyType is the media type of a body. Without one the body is refused, other than on the API
// server, which takes JSON: a page of any origin may send a body without a type.
func bodyType(c call) string {
	header := c.request.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return mediaType
}

// readObject reads the object in a body and puts it into the namespace of the path.
func (e *resourceEndpoint[T]) readObject(c call, o collection.WriteOptions) (T, error) {
	obj := e.cache.Kind().Empty()
	body, err := readBody(c)
	if err != nil {
		return obj, err
	}
	r := e.cache.Kind()
	kind, objections, err := decode(bodyType(c), body, obj, strict(o))
	if err != nil {
		return obj, e.unreadable(err)
	}
	if err := e.checkKind(kind); err != nil {
		return obj, err
	}
	if prune := e.collection.Rules().Prune; prune != nil {
		dropped, err := prune(obj)
		if err != nil {
			return obj, apierrors.NewBadRequest(err.Error())
		}
		objections = append(objections, collection.Unknown(dropped)...)
	}
	if o.FieldValidation == metav1.FieldValidationStrict && len(objections) > 0 {
		return obj, e.unreadable(apierrors.NewBadRequest(runtime.NewStrictDecodingError(objections).Error()))
	}
	if strict(o) {
		for _, objection := range objections {
			c.warn(objection.Error())
		}
	}
	return obj, r.Place(c.target.Namespace, obj)
}

// unreadable names the kind in the error of a body that cannot be read, in the words of the API
// server.
func (e *resourceEndpoint[T]) unreadable(err error) error {
	if !apierrors.IsBadRequest(err) {
		return err
	}
	r := e.cache.Kind()
	return apierror.BadRequest("%s in version %q cannot be handled as a %s: %v", r.Kind, r.Version, r.Kind, err)
}

// checkKind compares the kind that a document names with that of the resource.
func (e *resourceEndpoint[T]) checkKind(kind metav1.TypeMeta) error {
	r := e.cache.Kind()
	apiVersion := r.GroupVersionKind().GroupVersion().String()
	if kind.APIVersion != "" && kind.APIVersion != apiVersion {
		return apierror.BadRequest("the API version in the data (%s) does not match the expected API version (%s)",
			kind.APIVersion, apiVersion)
	}
	if kind.Kind == "" || kind.Kind == r.Kind {
		return nil
	}
	if _, isDocument := e.sample().(runtime.Unstructured); isDocument {
		return apierrors.NewInvalid(r.GroupVersionKind().GroupKind(), "", field.ErrorList{
			field.Invalid(field.NewPath("kind"), kind.Kind, "must be "+r.Kind),
		})
	}
	return apierror.BadRequest("the kind in the data (%s) does not match the expected kind (%s)", kind.Kind, r.Kind)
}

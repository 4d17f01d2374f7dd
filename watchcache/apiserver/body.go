package apiserver

import (
	"errors"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/watchcache/internal/apierror"
)

// maxBody bounds what a client may send, as in the API server.
const maxBody = 3 << 20

// readBody reads a bounded body: 413 beyond.
func readBody(c call) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.ResponseWriter, c.request.Body, maxBody))
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		return nil, apierrors.NewRequestEntityTooLargeError("limit is 3 MiB")
	case err != nil:
		return nil, apierror.BadRequest("the body of the request could not be read: %v", err)
	}
	return body, nil
}

// bodyType is the media type of a body; JSON if the client does not name one.
func bodyType(c call) string {
	header := c.request.Header.Get("Content-Type")
	if header == "" {
		return jsonType
	}
	mediaType, _, err := mime.ParseMediaType(header)
	if err != nil {
		return header
	}
	return mediaType
}

// readObject reads the object in a body and puts it into the namespace of the path.
func (e *resourceEndpoint[T]) readObject(c call) (T, error) {
	obj := e.cache.Resource().Empty()
	body, err := readBody(c)
	if err != nil {
		return obj, err
	}
	r := e.cache.Resource()
	kind, err := decode(bodyType(c), body, obj)
	if err != nil {
		return obj, err
	}
	apiVersion := r.GroupVersionKind().GroupVersion().String()
	if kind.APIVersion != "" && kind.APIVersion != apiVersion {
		return obj, apierror.BadRequest("the API version in the data (%s) does not match the expected API version (%s)",
			kind.APIVersion, apiVersion)
	}
	if kind.Kind != "" && kind.Kind != r.Kind {
		return obj, apierror.BadRequest("the kind in the data (%s) does not match the expected kind (%s)", kind.Kind, r.Kind)
	}
	return obj, r.Place(c.target.Namespace, obj)
}

// readDeleteOptions reads the body of a DELETE, if there is one, and the query, which the body
// overrides.
func readDeleteOptions(c call) (o metav1.DeleteOptions, err error) {
	values := c.request.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&values, &o, nil); err != nil {
		return o, apierrors.NewBadRequest(err.Error())
	}
	body, err := readBody(c)
	if err != nil || len(body) == 0 {
		return o, err
	}
	if _, err := decode(bodyType(c), body, &o); err != nil {
		return o, err
	}
	if len(o.DryRun) > 0 {
		return o, apierror.BadRequest("dryRun is not supported")
	}
	return o, nil
}

package apiserver

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tributary-go/tributary/watchcache/internal/apierror"
	"github.com/tributary-go/tributary/watchcache/internal/object"
)

// maxBody bounds what a client may send, as in the API server.
const maxBody = 3 << 20

// unmarshaler is a type with generated protobuf code.
type unmarshaler interface{ Unmarshal([]byte) error }

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

// bodyType is the media type of a body; JSON where the client does not say.
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
	obj := object.New[T]()
	body, err := readBody(c)
	if err != nil {
		return obj, err
	}
	r := e.cache.Resource()
	kind, err := decode(bodyType(c), body, obj, e.protobuf())
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

// decode reads a document into obj and returns the kind that it says it has.
func decode(mediaType string, doc []byte, obj any, protobuf bool) (metav1.TypeMeta, error) {
	var kind metav1.TypeMeta
	switch mediaType {
	case jsonType:
		if err := json.Unmarshal(doc, &kind); err != nil {
			return kind, apierror.BadRequest("the body of the request is not a JSON object")
		}
		if err := json.Unmarshal(doc, obj); err != nil {
			return kind, apierror.BadRequest("the body of the request does not fit the type: a field has a value of the wrong form")
		}
		return kind, nil
	case protobufType:
		message, ok := obj.(unmarshaler)
		if !ok || !protobuf {
			return kind, apierror.UnsupportedMedia(jsonType)
		}
		var envelope runtime.Unknown
		raw, isProtobuf := bytes.CutPrefix(doc, []byte(protobufPrefix))
		if !isProtobuf || envelope.Unmarshal(raw) != nil || message.Unmarshal(envelope.Raw) != nil {
			return kind, apierror.BadRequest("the body of the request is not a protobuf document of the type")
		}
		return metav1.TypeMeta{APIVersion: envelope.APIVersion, Kind: envelope.Kind}, nil
	}
	return kind, apierror.UnsupportedMedia(jsonType, protobufType)
}

// readDeleteOptions reads the body of a DELETE, if there is one, and the query, which the body overrides.
func readDeleteOptions(c call) (o metav1.DeleteOptions, err error) {
	values := c.request.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&values, &o, nil); err != nil {
		return o, apierrors.NewBadRequest(err.Error())
	}
	body, err := readBody(c)
	if err != nil || len(body) == 0 {
		return o, err
	}
	if _, err := decode(bodyType(c), body, &o, true); err != nil {
		return o, err
	}
	if len(o.DryRun) > 0 {
		return o, apierror.BadRequest("dryRun is not supported")
	}
	return o, nil
}

package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/reflector"
)

const (
	ownerTimeout = 10 * time.Second
	maxOwner     = 2 << 20 // etcd holds no larger object
	asMetadata   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// controllerOf asks for the controller of an object; nil: it has none, or is gone itself. First any
// version will do, which the API server has in memory. Only an object that is missing there is
// looked up in etcd.
func controllerOf(ctx context.Context, client rest.Interface, object owned) (*metav1.OwnerReference, error) {
	ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	for _, version := range []string{"0", ""} {
		found, err := getMetadata(ctx, client, object, version)
		switch {
		case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err):
		case err != nil:
			return nil, err
		case found.UID == object.uid:
			return metav1.GetControllerOf(found), nil
		}
	}
	return nil, nil
}

func getMetadata(ctx context.Context, client rest.Interface, object owned, version string) (*metav1.PartialObjectMetadata, error) {
	request := client.Get().
		AbsPath("apis", object.resource.Group, object.resource.Version, "namespaces", object.namespace, object.resource.Resource, object.name).
		SetHeader("Accept", asMetadata)
	if version != "" {
		request.Param("resourceVersion", version)
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxOwner+1))
	if err != nil {
		return nil, err
	}
	var found metav1.PartialObjectMetadata
	if len(data) > maxOwner || json.Unmarshal(data, &found) != nil || found.UID == "" {
		return nil, errNoMetadata
	}
	return &found, nil
}

var errNoMetadata = errors.New("the answer is not the metadata of an object")

// classOf is the class of a failed request.
func classOf(err error) reflector.Class {
	switch {
	case errors.Is(err, errNoMetadata):
		return reflector.Undecodable
	case errors.Is(err, context.DeadlineExceeded):
		return reflector.Silent
	}
	return reflector.Classify(err)
}

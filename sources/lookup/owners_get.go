package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/tributary-go/tributary/reflector"
)

const (
	ownerTimeout = 10 * time.Second
	maxOwner     = 2 << 20 // etcd holds no larger object
	asMetadata   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asList       = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

	// The pace of all requests of a node is that of its kubelet (--kube-api-qps, --kube-api-burst).
	ownersQPS, ownersBurst = 50, 100
)

// asker makes the requests. They do not wait for the rate limiter of their client: a program's own
// requests would hold them up, at client-go's default of five a second.
type asker struct {
	client rest.Interface
	pace   flowcontrol.RateLimiter
}

func newAsker(client rest.Interface) asker {
	return asker{client, flowcontrol.NewTokenBucketRateLimiter(ownersQPS, ownersBurst)}
}

// answer is the controller of an object as the API server knows it.
type answer struct {
	above *metav1.OwnerReference // nil: the object has none
	gone  error                  // the object is gone, and this is why its controller is not known
}

// controllerOf asks for the controller of an object. First any version will do, which the API
// server has in memory. Only an object that is missing there is looked up in etcd, and if it is
// gone, in the state that etcd had when its pod was written.
func (a asker) controllerOf(ctx context.Context, object owned) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, ownerTimeout)
	defer cancel()
	for _, version := range []string{"0", ""} {
		found, err := a.get(ctx, object, version)
		switch {
		case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err):
		case err != nil:
			return answer{}, err
		case found.UID == object.uid:
			return answer{above: metav1.GetControllerOf(found)}, nil
		}
	}
	return a.past(ctx, object)
}

// past looks for an object that is gone in the state of etcd at the version of its pod: a pod is
// written after its controller. etcd keeps its past for some five minutes.
func (a asker) past(ctx context.Context, object owned) (answer, error) {
	if object.version == "" || object.version == "0" {
		return answer{gone: object.isGone("its pod has no resource version, by which to find it in the past")}, nil
	}
	all, err := a.listAt(ctx, object)
	switch classOf(err) {
	case reflector.OK:
		for i := range all {
			if all[i].UID == object.uid {
				return answer{above: metav1.GetControllerOf(&all[i])}, nil
			}
		}
		return answer{gone: object.isGone("it was gone before its pod was seen")}, nil
	case reflector.Forbidden:
		return answer{gone: object.isGone("the agent needs the verb list of it to find it in the past")}, nil
	case reflector.Expired, reflector.TooLarge, reflector.NotFound, reflector.Refused:
		return answer{gone: object.isGone("the API server does not have the time of its pod any more")}, nil
	}
	return answer{}, err
}

// isGone is the reason why the controller of an object is not known.
func (o owned) isGone(why string) error {
	return fmt.Errorf("%s %s/%s is gone: %s", o.resource.GroupResource(), o.namespace, o.name, why)
}

func (a asker) get(ctx context.Context, object owned, version string) (*metav1.PartialObjectMetadata, error) {
	request := a.request(object, asMetadata, object.name)
	if version != "" {
		request.Param("resourceVersion", version)
	}
	var found metav1.PartialObjectMetadata
	if err := read(ctx, request, &found); err != nil {
		return nil, err
	}
	if found.UID == "" {
		return nil, errNoMetadata
	}
	return &found, nil
}

// listAt lists the object as it was at the version of its pod: one key of etcd.
func (a asker) listAt(ctx context.Context, object owned) ([]metav1.PartialObjectMetadata, error) {
	request := a.request(object, asList).
		Param("fieldSelector", "metadata.name="+object.name).
		Param("resourceVersion", object.version).
		Param("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	var found metav1.PartialObjectMetadataList
	err := read(ctx, request, &found)
	return found.Items, err
}

func (a asker) request(object owned, accept string, name ...string) *rest.Request {
	path := append([]string{"apis", object.resource.Group, object.resource.Version, "namespaces", object.namespace, object.resource.Resource}, name...)
	return a.client.Get().AbsPath(path...).SetHeader("Accept", accept).Throttle(a.pace).MaxRetries(0)
}

func read(ctx context.Context, request *rest.Request, into any) error {
	body, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxOwner+1))
	if err != nil {
		return err
	}
	if len(data) > maxOwner || json.Unmarshal(data, into) != nil {
		return errNoMetadata
	}
	return nil
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

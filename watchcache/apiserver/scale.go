package apiserver

import (
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/internal/apierror"
)

// scaleName is the subresource of the replicas of an object.
const scaleName = "scale"

// scales writes them in every format.
var scales = codec[*autoscalingv1.Scale]{
	resource: watchcache.Resource[*autoscalingv1.Scale]{
		Group: autoscalingv1.GroupName, Version: autoscalingv1.SchemeGroupVersion.Version, Kind: "Scale",
	},
	columns: []watchcache.Column[*autoscalingv1.Scale]{
		nameColumn[*autoscalingv1.Scale](),
		{Name: "Desired", Type: "integer", Value: func(s *autoscalingv1.Scale) any { return s.Spec.Replicas }},
		{Name: "Available", Type: "integer", Value: func(s *autoscalingv1.Scale) any { return s.Status.Replicas }},
		watchcache.AgeColumn[*autoscalingv1.Scale](),
	},
}

// describeScale is the subresource in discovery.
func describeScale(plural string, namespaced bool) metav1.APIResource {
	kind := autoscalingv1.SchemeGroupVersion
	return metav1.APIResource{
		Name: plural + "/" + scaleName, Namespaced: namespaced, Group: kind.Group, Version: kind.Version, Kind: "Scale",
		Verbs: metav1.Verbs{"get", "patch", "update"},
	}
}

// serveScale answers GET, PUT and PATCH of the subresource.
func (e *resourceEndpoint[T]) serveScale(c call) error {
	scale, err := (*autoscalingv1.Scale)(nil), error(nil)
	switch {
	case c.request.Method == http.MethodGet:
		scale, err = e.collection.Scale(c.target.Namespace, c.target.Name)
	case c.request.Method == http.MethodPut:
		scale, err = e.updateScale(c)
	case c.request.Method == http.MethodPatch:
		scale, err = e.patchScale(c)
	default:
		return e.notAllowed(c)
	}
	if err != nil {
		return err
	}
	doc, err := scales.object(c.format, scale)
	if err != nil {
		return err
	}
	respondBytes(c, c.format.contentType(false), http.StatusOK, doc)
	return nil
}

func (e *resourceEndpoint[T]) updateScale(c call) (*autoscalingv1.Scale, error) {
	o, err := updateOptions(c)
	if err != nil {
		return nil, err
	}
	scale := &autoscalingv1.Scale{}
	if err := readPart(c, scale, &scale.ObjectMeta); err != nil {
		return nil, err
	}
	return e.collection.With(o).UpdateScale(scale)
}

func (e *resourceEndpoint[T]) patchScale(c call) (*autoscalingv1.Scale, error) {
	kind := types.PatchType(bodyType(c))
	if err := e.takes(kind); err != nil {
		return nil, err
	}
	if kind == types.ApplyYAMLPatchType {
		return nil, apierror.UnsupportedMedia(string(types.JSONPatchType), string(types.MergePatchType))
	}
	patch, err := readBody(c)
	if err != nil {
		return nil, err
	}
	o, _, err := patchOptions(c, kind)
	if err != nil {
		return nil, err
	}
	return e.collection.With(o).PatchScale(c.target.Namespace, c.target.Name, kind, patch)
}

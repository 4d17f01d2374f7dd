package apiserver

import (
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// scaleName is the subresource of the replicas of an object.
const scaleName = "scale"

// newScales serves the scale subresource of a collection; nil if it has none.
func (e *resourceEndpoint[T]) newScales() *resourceEndpoint[*autoscalingv1.Scale] {
	if e.collection == nil || e.collection.Rules().Scale == nil {
		return nil
	}
	scales, err := e.collection.Scales()
	if err != nil {
		panic(err) // the types of the resource lack Scale: a mistake in the program
	}
	return newEndpoint(scales.Cache(), scales, View[*autoscalingv1.Scale]{Columns: []Column[*autoscalingv1.Scale]{
		{Name: "Desired", Type: "integer", Value: func(s *autoscalingv1.Scale) any { return s.Spec.Replicas }},
		{Name: "Available", Type: "integer", Value: func(s *autoscalingv1.Scale) any { return s.Status.Replicas }},
		AgeColumn[*autoscalingv1.Scale](),
	}}, nil)
}

// serveScale answers requests to the scale subresource: reads by the object, and writes as those of
// an object of kind Scale.
func (e *resourceEndpoint[T]) serveScale(c call) error {
	c.target.Subresource = ""
	switch {
	case c.target.Name == "":
		return e.notAllowed(c)
	case c.request.Method == http.MethodPut:
		return e.scales.serveUpdate(c)
	case c.request.Method == http.MethodPatch:
		if err := e.takes(types.PatchType(bodyType(c))); err != nil {
			return err
		}
		return e.scales.servePatch(c)
	case c.request.Method != http.MethodGet:
		return e.notAllowed(c)
	}
	r, err := readRequest(c)
	if err != nil {
		return err
	}
	obj, err := e.cache.Get(c.request.Context(), r)
	if err != nil {
		return err
	}
	scale, err := e.collection.ScaleOf(obj)
	if err != nil {
		return err
	}
	return e.scales.respond(c, http.StatusOK, scale)
}

// describeScale is the subresource in discovery and OpenAPI.
func describeScale(of metav1.APIResource) described {
	kind := autoscalingv1.SchemeGroupVersion
	return described{
		APIResource: metav1.APIResource{
			Name: of.Name + "/" + scaleName, Namespaced: of.Namespaced, Group: kind.Group, Version: kind.Version, Kind: "Scale",
			Verbs: metav1.Verbs{"get", "patch", "update"},
		},
		body: &autoscalingv1.Scale{}, bodyKind: kind.WithKind("Scale"),
	}
}

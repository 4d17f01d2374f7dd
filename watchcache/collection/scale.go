package collection

import (
	"encoding/json"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/watchcache/internal/apierror"
)

// Scale returns the scale of an object. Errors: NotFound, also if the kind has no
// [github.com/tributary-go/tributary/watchcache.Scale].
func (c *Collection[T]) Scale(namespace, name string) (*autoscalingv1.Scale, error) {
	stored, err := c.Get(namespace, name)
	if err != nil {
		return nil, err
	}
	return c.scaleOf(stored)
}

// UpdateScale sets the replicas of an object. Errors: those of [Collection.Update]; Invalid for
// fewer than none.
func (c *Collection[T]) UpdateScale(scale *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
	for attempt := 1; ; attempt++ {
		stored, err := c.Get(scale.Namespace, scale.Name)
		if err != nil {
			return nil, err
		}
		scaled, err := c.scaled(stored, scale)
		if err == nil {
			scaled, err = c.Update(scaled)
		}
		if scale.ResourceVersion == "" && apierrors.IsConflict(err) && attempt < patchAttempts {
			continue
		}
		if err != nil {
			return nil, err
		}
		return c.scaleOf(scaled)
	}
}

// PatchScale makes a JSON, merge or strategic merge patch on the scale of an object. Errors: those
// of [Collection.Patch] and [Collection.UpdateScale].
func (c *Collection[T]) PatchScale(namespace, name string, kind types.PatchType, body []byte) (*autoscalingv1.Scale, error) {
	scale, err := c.Scale(namespace, name)
	if err != nil {
		return nil, err
	}
	version := scale.ResourceVersion
	before, err := json.Marshal(scale)
	if err != nil {
		return nil, err
	}
	after, objections, err := c.applyPatch(kind, before, body, scale)
	if err == nil {
		err = c.object(objections)
	}
	if err != nil {
		return nil, err
	}
	patched := &autoscalingv1.Scale{}
	if err := json.Unmarshal(after, patched); err != nil {
		return nil, unfit(err.Error())
	}
	if patched.Name != name || patched.Namespace != scale.Namespace {
		return nil, apierror.OtherName(patched.Name, name)
	}
	if patched.ResourceVersion == version {
		patched.ResourceVersion = "" // not a precondition of the patch's own
	}
	return c.UpdateScale(patched)
}

// scaleOf reads the scale of an object.
func (c *Collection[T]) scaleOf(obj T) (*autoscalingv1.Scale, error) {
	paths := c.resource().Scale
	if paths == nil {
		return nil, c.notFound(obj.GetName())
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(),
	}}
	scale.Spec.Replicas = integerAt(content, paths.SpecReplicas)
	scale.Status.Replicas = integerAt(content, paths.StatusReplicas)
	scale.Status.Selector = selectorAt(content, paths.Selector)
	return scale, nil
}

// scaled is a stored object with the replicas of a scale.
func (c *Collection[T]) scaled(stored T, scale *autoscalingv1.Scale) (T, error) {
	next := c.resource().Empty()
	paths := c.resource().Scale
	if paths == nil {
		return next, c.notFound(scale.Name)
	}
	if scale.Spec.Replicas < 0 {
		return next, apierrors.NewInvalid(c.resource().GroupVersionKind().GroupKind(), scale.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0"),
		})
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		return next, err
	}
	if err := unstructured.SetNestedField(content, int64(scale.Spec.Replicas), paths.SpecReplicas...); err != nil {
		return next, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, next); err != nil {
		return next, err
	}
	if scale.ResourceVersion != "" {
		next.SetResourceVersion(scale.ResourceVersion)
	}
	if scale.UID != "" {
		next.SetUID(scale.UID)
	}
	return next, nil
}

func integerAt(content map[string]any, path []string) int32 {
	n, _, _ := unstructured.NestedInt64(content, path...) // zero if it is none
	return int32(n)
}

// selectorAt is a selector as a string; empty if there is none.
func selectorAt(content map[string]any, path []string) string {
	if len(path) == 0 {
		return ""
	}
	value, _, _ := unstructured.NestedFieldNoCopy(content, path...)
	switch v := value.(type) {
	case string:
		return v
	case map[string]any:
		var selector metav1.LabelSelector
		if v["matchLabels"] == nil && v["matchExpressions"] == nil {
			texts, _, _ := unstructured.NestedStringMap(content, path...)
			return labels.FormatLabels(texts)
		}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(v, &selector) == nil {
			return metav1.FormatLabelSelector(&selector)
		}
	}
	return ""
}

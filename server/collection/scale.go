package collection

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// Scales are the scale subresources of a collection with [Rules.Scale]. To update or patch one is
// to write the wanted number of replicas of the object of its name. They cannot be created,
// deleted or listed, and have no cache to read. Errors are those of the collection.
func (c *Collection[T]) Scales() (*Collection[*autoscalingv1.Scale], error) {
	kind := watchcache.Kind[*autoscalingv1.Scale]{
		Group: autoscalingv1.GroupName, Version: "v1", Plural: c.Kind().Plural, Kind: "Scale", ClusterScoped: c.Kind().ClusterScoped,
	}
	rules := Rules[*autoscalingv1.Scale]{
		BuiltIn: true, UnconditionalUpdate: true, Generation: CountSpec, Types: c.rules.Types,
	}
	if c.rules.BuiltIn { // else the object's own rules refuse a bad number
		rules.Validate = checkScale
	}
	if rules.Types == nil { // client-go's do not have the kind
		rules.Types = managedfields.NewDeducedTypeConverter()
	}
	none, err := watchcache.NewCache(kind)
	if err != nil {
		return nil, err
	}
	return newCollection(none, rules, Storage[*autoscalingv1.Scale](scales[T]{c}), "scale")
}

func checkScale(scale, _ *autoscalingv1.Scale) (errs field.ErrorList) {
	if scale.Spec.Replicas < 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0"))
	}
	return errs
}

// ScaleOf is the scale subresource of an object. Error: a 500 for an object without a
// wanted number of replicas, or with one of a wrong type.
func (c *Collection[T]) ScaleOf(obj T) (*autoscalingv1.Scale, error) {
	scale, wanted, err := c.scaleOf(obj)
	if err == nil && !wanted {
		err = fmt.Errorf("the spec replicas field %q does not exist", c.wanted())
	}
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return scale, nil
}

// scales is the storage of the scale subresources of a collection.
type scales[T store.Object] struct{ of *Collection[T] }

// with: whoever writes a scale writes the object.
func (s scales[T]) with(o WriteOptions) Storage[*autoscalingv1.Scale] { return scales[T]{s.of.With(o)} }

func (s scales[T]) Read(key string) (scale *autoscalingv1.Scale, found bool, err error) {
	obj, found, err := s.of.storage.Read(key)
	if err == nil && !found {
		err = s.of.notFound(nameIn(key))
	}
	if err == nil {
		scale, _, err = s.owned(obj)
	}
	return scale, found, err
}

// Write writes the replicas of the decision, and their owners.
func (s scales[T]) Write(key string, decide func(*autoscalingv1.Scale, bool) (Decision[*autoscalingv1.Scale], error)) (*autoscalingv1.Scale, error) {
	written, err := s.of.storage.Write(key, func(stored T, found bool) (d Decision[T], err error) {
		if err := s.of.there(found, nameIn(key)); err != nil {
			return d, err
		}
		scale, owners, err := s.owned(stored)
		if err != nil {
			return d, err
		}
		decided, err := decide(scale, true)
		if err != nil {
			return d, err
		}
		if decided.Object.Spec.Replicas == noReplicas {
			return d, apierror.BadRequest("the spec replicas field %q cannot be empty", s.of.wanted())
		}
		next := object.Copy(stored)
		if err := setNumber(next, int64(decided.Object.Spec.Replicas), s.of.rules.Scale.SpecReplicas); err != nil {
			return d, err
		}
		entries, err := owners.ToParent(decided.Object.ManagedFields)
		if err != nil {
			return d, err
		}
		next.SetManagedFields(entries)
		return s.of.updated(stored, next)
	})
	if err != nil {
		return nil, err
	}
	return s.of.ScaleOf(written)
}

// owned is the scale of an object as writers see it: with the owners of its replicas.
func (s scales[T]) owned(obj T) (*autoscalingv1.Scale, *managedfields.ScaleHandler, error) {
	scale, wanted, err := s.of.scaleOf(obj)
	if err != nil {
		return nil, nil, apierrors.NewInternalError(err)
	}
	if !wanted {
		scale.Spec.Replicas = noReplicas
	}
	version := s.of.Kind().GroupVersionKind().GroupVersion()
	owners := managedfields.NewScaleHandler(obj.GetManagedFields(), version,
		pathMappings(managedfields.ResourcePathMappings{}, version.String(), s.of.rules.Scale.SpecReplicas))
	scale.ManagedFields, err = owners.ToSubresource()
	return scale, owners, err
}

// noReplicas stands for a number that is not there.
const noReplicas = -1 << 31

// wanted names the field of the wanted number.
func (c *Collection[T]) wanted() string {
	return "." + strings.Join(c.rules.Scale.SpecReplicas, ".")
}

// scaleOf also reports whether the object has a wanted number of replicas.
func (c *Collection[T]) scaleOf(obj T) (scale *autoscalingv1.Scale, wanted bool, err error) {
	content, err := contentOf(obj)
	if err != nil {
		return nil, false, err
	}
	paths := c.rules.Scale
	spec, wanted, err := unstructured.NestedInt64(content, paths.SpecReplicas...)
	if err != nil {
		return nil, false, err
	}
	status, _, err := unstructured.NestedInt64(content, paths.StatusReplicas...)
	if err != nil {
		return nil, false, err
	}
	selector, err := selectorOf(content, paths.Selector)
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
			ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(spec)},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(status), Selector: selector},
	}, wanted, err
}

// selectorOf is the selector under a path, which is a string, a map of labels or a LabelSelector.
func selectorOf(content map[string]any, path []string) (string, error) {
	if len(path) == 0 {
		return "", nil
	}
	found, _, err := unstructured.NestedFieldNoCopy(content, path...)
	if err != nil {
		return "", err
	}
	switch found := found.(type) {
	case string:
		return found, nil
	case map[string]any:
		if found["matchLabels"] == nil && found["matchExpressions"] == nil {
			pairs, _, err := unstructured.NestedStringMap(content, path...)
			return labels.FormatLabels(pairs), err
		}
		var given metav1.LabelSelector
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, &given); err != nil {
			return "", err
		}
		return metav1.FormatLabelSelector(&given), nil
	}
	return "", nil
}

// contentOf is an object as a document. That of a document is the object's own.
func contentOf(obj runtime.Object) (map[string]any, error) {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// setNumber sets a field of an object.
func setNumber(obj runtime.Object, value int64, path []string) error {
	content, err := contentOf(obj)
	if err == nil {
		err = unstructured.SetNestedField(content, value, path...)
	}
	if _, isDocument := obj.(runtime.Unstructured); err != nil || isDocument {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj)
}

// pathMappings is a path in the library's form, P and E, which it has in JSON.
func pathMappings[M ~map[string]P, P ~[]E, E any](of M, version string, names []string) M {
	path := make(P, len(names))
	for i, name := range names {
		element, err := json.Marshal(map[string]string{"FieldName": name})
		if err = errors.Join(err, json.Unmarshal(element, &path[i])); err != nil {
			panic(err) // TestScale reads one
		}
	}
	of[version] = path
	return of
}

func nameIn(key string) string {
	_, name, _ := store.SplitKey(key) // it is one of store.Key
	return name
}

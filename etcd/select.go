package etcd

import (
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/store"
)

const (
	nameField      = "metadata.name"
	namespaceField = "metadata.namespace"
)

// request is a list or watch with checked options.
type request[T store.Object] struct {
	internalversion.ListOptions
	version int64 // zero: none, or any
	source  *Source[T]
}

// request checks options by the API server's rules.
func (s *Source[T]) request(options metav1.ListOptions) (r request[T], err error) {
	r.source = s
	if err := internalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&options, &r.ListOptions, nil); err != nil {
		return r, badRequest("%v", err)
	}
	if errs := validation.ValidateListOptions(&r.ListOptions, true); len(errs) > 0 {
		return r, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	if r.ResourceVersion != "" {
		if r.version, err = strconv.ParseInt(r.ResourceVersion, 10, 64); err != nil {
			return r, badRequest("invalid resource version: %q is not a decimal number of 63 bits", r.ResourceVersion)
		}
	}
	if r.Continue != "" && r.version != 0 {
		return r, badRequest("specifying resource version is not allowed when using continue")
	}
	if r.LabelSelector != nil && r.LabelSelector.Empty() {
		r.LabelSelector = nil
	}
	if r.FieldSelector != nil && r.FieldSelector.Empty() {
		r.FieldSelector = nil
	}
	if r.FieldSelector != nil {
		for _, requirement := range r.FieldSelector.Requirements() {
			if _, ok := s.labels[requirement.Field]; !ok {
				return r, badRequest("field label not supported: %s", requirement.Field)
			}
		}
	}
	return r, nil
}

// selective reports whether anything is selected by.
func (r *request[T]) selective() bool { return r.LabelSelector != nil || r.FieldSelector != nil }

func (r *request[T]) matches(obj T) bool {
	return (r.LabelSelector == nil || r.LabelSelector.Matches(labels.Set(obj.GetLabels()))) &&
		(r.FieldSelector == nil || r.FieldSelector.Matches(r.source.fieldsOf(obj)))
}

func (s *Source[T]) fieldsOf(obj T) fields.Set {
	set := fields.Set{nameField: obj.GetName(), namespaceField: obj.GetNamespace()}
	for label, value := range s.fieldOf(obj) {
		set[label] = value
	}
	return set
}

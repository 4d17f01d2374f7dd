package etcd

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/server/watchcache"
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
	parsed := watchcache.Request{}
	if err := internalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&options, &parsed.ListOptions, nil); err != nil {
		return r, badRequest("%v", err)
	}
	if err := parsed.Validate(); err != nil {
		return r, err
	}
	r = request[T]{ListOptions: parsed.ListOptions, source: s}
	if r.ResourceVersion != "" {
		if r.version, err = strconv.ParseInt(r.ResourceVersion, 10, 64); err != nil {
			return r, badRequest("invalid resource version: %q is not a decimal number of 63 bits", r.ResourceVersion)
		}
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

// Package factory has the common parts of the factories in the packages above it.
package factory

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/listwatch"
)

// Selectors calls tweak once and returns the label and field selectors that it sets. A nil tweak
// sets none.
func Selectors(tweak func(*metav1.ListOptions)) ([]listwatch.FuncsOption, error) {
	if tweak == nil {
		return nil, nil
	}
	var o metav1.ListOptions
	tweak(&o)
	label, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("label selector %q: %w", o.LabelSelector, err)
	}
	field, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return nil, fmt.Errorf("field selector %q: %w", o.FieldSelector, err)
	}
	return []listwatch.FuncsOption{listwatch.Labels(label), listwatch.Fields(field)}, nil
}

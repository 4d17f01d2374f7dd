package relay

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/tributary-go/tributary/listwatch"
)

// Scope is the part of a resource that is copied.
type Scope struct {
	// Resource is copied in each version that clients read.
	Resource schema.GroupResource
	// Namespace is the only one that is copied; empty copies all.
	Namespace string
	// Fields and Labels select the objects; nil selects all.
	Fields fields.Selector
	Labels labels.Selector
}

// String is the scope in the form of a request.
func (s Scope) String() string {
	parts := []string{}
	for _, p := range [][2]string{{"namespace", s.Namespace}, {"fieldSelector", text(s.Fields)}, {"labelSelector", text(s.Labels)}} {
		if p[1] != "" {
			parts = append(parts, p[0]+"="+p[1])
		}
	}
	if len(parts) == 0 {
		return s.Resource.String()
	}
	return s.Resource.String() + "?" + strings.Join(parts, "&")
}

func text(selector fmt.Stringer) string {
	if selector == nil {
		return ""
	}
	return selector.String()
}

// covers reports whether the scope has all objects that a read may show.
func (s Scope) covers(r read) bool {
	if s.Resource != r.target.Resource.GroupResource() || s.Namespace != "" && s.Namespace != r.target.Namespace {
		return false
	}
	return s.coversFields(r) && s.coversLabels(r)
}

func (s Scope) coversFields(r read) bool {
	if s.Fields == nil || s.Fields.Empty() {
		return true
	}
	asked := fields.Requirements{{Operator: "=", Field: metav1.ObjectNameField, Value: r.target.Name}}
	if r.options.FieldSelector != nil {
		asked = append(asked, r.options.FieldSelector.Requirements()...)
	}
	for _, want := range s.Fields.Requirements() {
		if !slices.ContainsFunc(asked, func(have fields.Requirement) bool {
			return have.Field == want.Field && have.Value == want.Value && negates(have) == negates(want)
		}) {
			return false
		}
	}
	return true
}

// negates tells the two operators of field selectors apart, one of which has two spellings.
func negates(r fields.Requirement) bool { return strings.HasPrefix(string(r.Operator), "!") }

func (s Scope) coversLabels(r read) bool {
	if s.Labels == nil || s.Labels.Empty() {
		return true
	}
	if r.options.LabelSelector == nil {
		return false
	}
	asked, _ := r.options.LabelSelector.Requirements()
	wanted, selectable := s.Labels.Requirements()
	if !selectable {
		return false // nothing is copied
	}
	for _, want := range wanted {
		if !slices.ContainsFunc(asked, func(have labels.Requirement) bool { return selectsAlike(have, want) }) {
			return false
		}
	}
	return true
}

// selectsAlike reports whether two requirements select the same objects, however they are written.
func selectsAlike(a, b labels.Requirement) bool {
	return a.Key() == b.Key() && plainOperator(a) == plainOperator(b) && a.Values().Equal(b.Values())
}

// plainOperator tells the spellings of an operator apart no more: k=v, k==v and "k in (v)".
func plainOperator(r labels.Requirement) selection.Operator {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals:
		return selection.In
	case selection.NotEquals:
		return selection.NotIn
	}
	return r.Operator()
}

// reading are the options of a source that reads the scope.
func (s Scope) reading() (list []listwatch.Option) {
	if s.Namespace != "" {
		list = append(list, listwatch.InNamespace(s.Namespace))
	}
	if s.Fields != nil {
		list = append(list, listwatch.Fields(s.Fields))
	}
	if s.Labels != nil {
		list = append(list, listwatch.Labels(s.Labels))
	}
	return list
}

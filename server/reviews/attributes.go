package reviews

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/internal/apierror"
)

// attributes describe a request in the terms of a SubjectAccessReview. One of the two is set.
type attributes struct {
	resource *authorizationv1.ResourceAttributes
	other    *authorizationv1.NonResourceAttributes
}

// isWatch reports whether the request goes on until its right ends.
func (a attributes) isWatch() bool { return a.resource != nil && a.resource.Verb == "watch" }

// verbs are those of a request for an object.
var verbs = map[string]string{
	http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// attributesOf derives the attributes as the API server does. The path is read by the function that
// routes the request, so that no request is judged as one for another resource.
func attributesOf(r *http.Request) (attributes, error) {
	if !utf8.ValidString(r.URL.Path) {
		return attributes{}, apierror.BadRequest("the path is not valid UTF-8")
	}
	t, ok := apiserver.ParseTarget(r.URL.Path)
	special := t.Namespace == "" && (t.Resource.Resource == "watch" || t.Resource.Resource == "proxy")
	switch {
	case !ok && !ofResources(r.URL.Path):
		return attributes{other: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}}, nil
	case !ok || special: // the server has no such paths
		return attributes{}, apierror.Refused(http.StatusNotFound, metav1.StatusReasonNotFound,
			"the server could not find the requested resource")
	case verbs[r.Method] == "":
		return attributes{}, apierror.Refused(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			"the server does not allow this method on the requested resource")
	}
	a := &authorizationv1.ResourceAttributes{
		Group: t.Resource.Group, Version: t.Resource.Version, Resource: t.Resource.Resource, Subresource: t.Subresource,
		Namespace: t.Namespace, Name: t.Name, Verb: verbs[r.Method],
	}
	if t.Resource.Resource == "namespaces" && t.Namespace == "" { // an object is in itself
		a.Namespace = t.Name
	}
	if t.Name == "" {
		if err := readCollection(a, r.URL.Query()); err != nil {
			return attributes{}, err
		}
	}
	return attributes{resource: a}, nil
}

// ofResources reports whether a path is one below which the API server has resources.
func ofResources(path string) bool {
	root, rest, _ := strings.Cut(strings.Trim(path, "/"), "/")
	return root == "api" && strings.Count(rest, "/") >= 1 || root == "apis" && strings.Count(rest, "/") >= 2
}

// readCollection completes the attributes of a request without a name by its query.
func readCollection(a *authorizationv1.ResourceAttributes, query url.Values) error {
	switch a.Verb {
	case "get":
		a.Verb, a.Name = readOptions(query)
	case "delete":
		a.Verb = "deletecollection"
	}
	if !slices.Contains([]string{"list", "watch", "deletecollection"}, a.Verb) {
		return nil
	}
	fieldSelector, labelSelector := query.Get("fieldSelector"), query.Get("labelSelector")
	if !valid(fieldSelector, labelSelector, a.Name) {
		return apierror.BadRequest("a selector is not valid UTF-8")
	}
	// A selector that cannot be read does not count: the right to all is asked for, and the
	// server refuses the selector.
	if requirements := fieldRequirements(fieldSelector); len(requirements) > 0 {
		a.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: requirements}
	}
	if requirements := labelRequirements(labelSelector); len(requirements) > 0 {
		a.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: requirements}
	}
	return nil
}

// readOptions tells a watch from a list, and finds the name that a field selector selects.
func readOptions(query url.Values) (verb, name string) {
	var o internalversion.ListOptions
	if err := scheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &o); err != nil {
		o = internalversion.ListOptions{}
		if values := query["watch"]; len(values) > 0 {
			value := strings.ToLower(values[0])
			o.Watch = value != "false" && value != "0"
		}
	}
	if o.FieldSelector != nil {
		selected, ok := o.FieldSelector.RequiresExactMatch("metadata.name")
		if ok && len(path.ValidatePathSegmentName(selected, false)) == 0 {
			name = selected
		}
	}
	if o.Watch {
		return "watch", name
	}
	return "list", name
}

// fieldRequirements are the requirements that authorizers know. To leave one out makes the question
// wider, and so never grants too much.
func fieldRequirements(text string) (all []metav1.FieldSelectorRequirement) {
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return nil
	}
	for _, r := range selector.Requirements() {
		made := metav1.FieldSelectorRequirement{Key: r.Field, Values: []string{r.Value}}
		switch r.Operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
			made.Operator = metav1.FieldSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			made.Operator = metav1.FieldSelectorOpNotIn
		}
		if made.Operator != "" && made.Key != "" { // the upstream finds an empty key invalid
			all = append(all, made)
		}
	}
	return all
}

var labelOperators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn, selection.In: metav1.LabelSelectorOpIn,
	selection.NotEquals: metav1.LabelSelectorOpNotIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

// labelRequirements is fieldRequirements of a label selector. The values are sorted: the order in
// which they are parsed is random.
func labelRequirements(text string) (all []metav1.LabelSelectorRequirement) {
	selector, err := labels.Parse(text)
	if err != nil {
		return nil
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		operator, ok := labelOperators[r.Operator()]
		if !ok {
			continue
		}
		made := metav1.LabelSelectorRequirement{Key: r.Key(), Operator: operator, Values: r.ValuesUnsorted()}
		slices.Sort(made.Values)
		all = append(all, made)
	}
	return all
}

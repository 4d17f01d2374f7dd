package listwatch

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// Scope is what a list of options says, in a form that can be compared with ==: which objects are kept, and in what form
// they are had. Equal scopes of one resource and one Go type can share a copy. Two that differ may still keep the same:
// that protobuf and JSON carry the same objects, for one, is not known here.
type Scope struct{ of options }

// Scopes are keys. An option that holds what cannot be compared, such as a function, must come with an identity of its own.
var _ map[Scope]struct{}

// ScopeOf is the scope of a list of options. The order of the options, and of the terms of a selector, does not count.
func ScopeOf(optionList ...Option) Scope {
	o := apply(optionList)
	o.fieldSelector = inOrder(o.fieldSelector)
	return Scope{o}
}

// inOrder sorts the terms of a field selector; those of label selectors come sorted.
func inOrder(selector string) string {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return selector // for the server to refuse
	}
	var terms []string
	for _, r := range parsed.Requirements() {
		terms = append(terms, r.Field+string(r.Operator)+fields.EscapeValue(r.Value))
	}
	slices.Sort(terms)
	return strings.Join(slices.Compact(terms), ",")
}

// Namespace is the namespace of [InNamespace]; empty for all of them, or cluster scope.
func (s Scope) Namespace() string { return s.of.namespace }

// String says what is kept and how it is read, for messages and labels, such as "in ns, fields spec.nodeName=n1, labels
// app=web". It is empty for the whole collection, read as it is by default.
func (s Scope) String() string {
	var parts []string
	add := func(what, value string) {
		if value != "" {
			parts = append(parts, what+" "+value)
		}
	}
	add("in", s.of.namespace)
	add("fields", s.of.fieldSelector)
	add("labels", s.of.labelSelector)
	for _, form := range []struct {
		said bool
		name string
	}{{s.of.json, "as JSON"}, {s.of.noSharing, "without sharing"}, {s.of.noWatchList, "without watch list"},
		{s.of.dropManaged, "without managed fields"}, {s.of.mutated != nil, "with a mutation detector"}} {
		if form.said {
			parts = append(parts, form.name)
		}
	}
	return strings.Join(parts, ", ")
}

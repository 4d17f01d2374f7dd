package listwatch

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// Scope is a comparable summary of options: which objects are selected and how they are decoded.
// Use it as a map key. Equal scopes of one resource and one Go type can share a copy. Different
// scopes may still have the same objects, for example as protobuf and as JSON.
type Scope struct{ of options }

// Scopes are map keys: an option with an incomparable value, such as a function, needs an identity
// of its own.
var _ map[Scope]struct{}

// ScopeOf returns the scope of a list of options. It ignores the order of the options, and of a
// selector's terms.
func ScopeOf(optionList ...Option) Scope {
	o := apply("ScopeOf", optionList)
	o.fieldSelector, o.shard = inOrder(o.fieldSelector), nil // shardSelector tells it
	return Scope{o}
}

// inOrder sorts the terms of a field selector; label selectors are already sorted.
func inOrder(selector string) string {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return selector // the server will refuse it
	}
	var terms []string
	for _, r := range parsed.Requirements() {
		terms = append(terms, r.Field+string(r.Operator)+fields.EscapeValue(r.Value))
	}
	slices.Sort(terms)
	return strings.Join(slices.Compact(terms), ",")
}

// Namespace returns the namespace of [InNamespace]; empty for all namespaces, or cluster scope.
func (s Scope) Namespace() string { return s.of.namespace }

// String describes the selection and the decoding, for messages and labels: "in ns, fields
// spec.nodeName=n1, labels app=web". It is empty for the whole collection, read with the defaults.
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
	add("shard", s.of.shardSelector)
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

package listwatch_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/listwatch"
)

func TestScopesAreEqualWhenTheyKeepTheSame(t *testing.T) {
	field := func(selector string) listwatch.Option { return listwatch.Fields(fields.ParseSelectorOrDie(selector)) }
	label := func(selector string) listwatch.Option {
		parsed, err := labels.Parse(selector)
		require.NoError(t, err)
		return listwatch.Labels(parsed)
	}
	one := listwatch.ScopeOf(listwatch.InNamespace("ns"), field("spec.nodeName=n1,status.phase!=Failed"), label("app=web,tier in (a,b)"))
	require.Equal(t, "ns", one.Namespace())
	require.Equal(t, "in ns, fields spec.nodeName=n1,status.phase!=Failed, labels app=web,tier in (a,b)", one.String())
	for name, same := range map[string]listwatch.Scope{
		"options in another order": listwatch.ScopeOf(label("app=web,tier in (a,b)"), field("spec.nodeName=n1,status.phase!=Failed"), listwatch.InNamespace("ns")),
		"terms in another order":   listwatch.ScopeOf(listwatch.InNamespace("ns"), field("status.phase!=Failed,spec.nodeName=n1"), label("tier in (b,a),app=web")),
		"a field twice, and ==":    listwatch.ScopeOf(listwatch.InNamespace("ns"), field("status.phase!=Failed,spec.nodeName==n1,spec.nodeName=n1"), label("app=web,tier in (b,a)")),
	} {
		require.Truef(t, one == same, "%s: %q", name, same)
	}
	all := listwatch.ScopeOf()
	require.Empty(t, all.String())
	require.Equal(t, "as JSON, without sharing", listwatch.ScopeOf(listwatch.WithoutSharing(), listwatch.WithJSON()).String())
	require.True(t, all == listwatch.ScopeOf(listwatch.InNamespace(""), listwatch.Fields(fields.Everything()), listwatch.Labels(labels.Everything())))
	seen := map[listwatch.Scope]string{one: "one", all: "all"}
	for name, option := range map[string]listwatch.Option{
		"namespace": listwatch.InNamespace("other"), "field": field("spec.nodeName=n2"), "not": field("spec.nodeName!=n1"),
		"label": label("app=db"), "the same as label": label("spec.nodeName=n2"), "json": listwatch.WithJSON(), "copies": listwatch.WithoutSharing(),
		"escaped": field(`spec.nodeName=n2\,status.phase\=x`), "two terms": field(`spec.nodeName=n2,status.phase=x`),
	} {
		scope := listwatch.ScopeOf(option)
		require.NotContainsf(t, seen, scope, "%s is %s", name, seen[scope])
		seen[scope] = name
	}
}

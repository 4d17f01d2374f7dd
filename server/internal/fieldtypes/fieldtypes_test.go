package fieldtypes

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var update = flag.Bool("update", false, "write types.json anew")

// kinds are those that client-go has types for, with the names of these. known has all its types.
func kinds(t *testing.T) (names map[schema.GroupVersionKind]string, known map[string]definition) {
	t.Helper()
	types := applyconfigurations.NewTypeConverter(scheme.Scheme)
	names = map[schema.GroupVersionKind]string{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal {
			continue
		}
		value, err := types.ObjectToTyped(empty(t, kind))
		if err != nil {
			continue
		}
		var of reference
		inYAML(t, value.TypeRef(), &of)
		if strings.HasPrefix(of.Named, "io.k8s.api.") { // others are in every group
			names[kind] = of.Named
			if known == nil {
				known = wired(t, value.Schema()) // of all kinds
			}
		}
	}
	return names, known
}

func empty(t *testing.T, kind schema.GroupVersionKind) runtime.Object {
	t.Helper()
	obj, err := scheme.Scheme.New(kind)
	require.NoError(t, err)
	obj.GetObjectKind().SetGroupVersionKind(kind)
	return obj
}

// TestTypes: each kind has the type that client-go has.
func TestTypes(t *testing.T) {
	if !scheme.Scheme.IsGroupRegistered("lifecycle.k8s.io") {
		t.Skip("types.json is of client-go 0.37, and this is an older one")
	}
	names, known := kinds(t)
	require.Greater(t, len(names), 100)
	if *update {
		write(t, names, known)
		t.Skip("types.json is written: run the test again")
	}
	for kind := range names {
		types, ok := For(kind)
		require.True(t, ok, "%s: run the test with -update", kind)
		got, err := types.ObjectToTyped(empty(t, kind))
		require.NoError(t, err)
		for name, def := range wired(t, got.Schema()) {
			require.Equal(t, known[name], def, "%s: run the test with -update", name)
		}
	}
	_, ok := For(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	require.False(t, ok)
	pod := corev1.SchemeGroupVersion.WithKind("Pod")
	types, _ := For(pod)
	there, err := types.ObjectToTyped(empty(t, pod))
	require.NoError(t, err)
	document, err := types.TypedToObject(there)
	require.NoError(t, err)
	again, err := types.ObjectToTyped(document)
	require.NoError(t, err)
	require.Equal(t, there.AsValue().Unstructured(), again.AsValue().Unstructured())
}

// write writes types.json.
func write(t *testing.T, names map[schema.GroupVersionKind]string, known map[string]definition) {
	packages, lines := map[string]string{}, []string{}
	for kind, name := range names {
		packages[kind.Group] = strings.TrimSuffix(name, "."+kind.Version+"."+kind.Kind)
	}
	for _, def := range known {
		line, err := json.Marshal(map[string]*spec.Schema{def.Name: def.openAPI()})
		require.NoError(t, err)
		lines = append(lines, string(line))
	}
	slices.Sort(lines)
	first, err := json.Marshal(packages)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("types.json", []byte(string(first)+"\n"+strings.Join(lines, "\n")+"\n"), 0o644))
}

// wired are the types of one of the library's schemas, by name. They pass
// through YAML, so that no type of the library is named: its path is not the same in all releases.
func wired(t *testing.T, schema any) map[string]definition {
	t.Helper()
	var all struct{ Types []definition }
	inYAML(t, schema, &all)
	found := map[string]definition{}
	for _, def := range all.Types {
		if def.Map != nil { // the library does not sort them
			slices.SortFunc(def.Map.Fields, func(a, b field) int { return strings.Compare(a.Name, b.Name) })
		}
		found[def.Name] = def
	}
	return found
}

func inYAML(t *testing.T, from, to any) {
	t.Helper()
	text, err := yaml.Marshal(from)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, to))
}

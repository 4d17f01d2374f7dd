package fieldtypes

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

var update = flag.Bool("update", false, "write types.json anew")

// kinds are those that client-go has types for.
func kinds(t *testing.T) map[schema.GroupVersionKind]*typed.TypedValue {
	t.Helper()
	types := applyconfigurations.NewTypeConverter(scheme.Scheme)
	found := map[schema.GroupVersionKind]*typed.TypedValue{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal {
			continue
		}
		obj, err := scheme.Scheme.New(kind)
		require.NoError(t, err)
		obj.GetObjectKind().SetGroupVersionKind(kind)
		value, err := types.ObjectToTyped(obj)
		// Others are in every group.
		if err == nil && strings.HasPrefix(*value.TypeRef().NamedType, "io.k8s.api.") {
			found[kind] = value
		}
	}
	return found
}

// TestTypes: each kind has the type that client-go has.
func TestTypes(t *testing.T) {
	if !scheme.Scheme.IsGroupRegistered("lifecycle.k8s.io") {
		t.Skip("types.json is of client-go 0.37, and this is an older one")
	}
	all := kinds(t)
	require.Greater(t, len(all), 100)
	if *update {
		write(t, all)
		t.Skip("types.json is written: run the test again")
	}
	for kind, want := range all {
		types, ok := For(kind)
		require.True(t, ok, "%s: run the test with -update", kind)
		obj, err := scheme.Scheme.New(kind)
		require.NoError(t, err)
		obj.GetObjectKind().SetGroupVersionKind(kind)
		got, err := types.ObjectToTyped(obj)
		require.NoError(t, err)
		for _, def := range got.Schema().Types {
			theirs, ok := want.Schema().FindNamedType(def.Name)
			require.True(t, ok, def.Name)
			require.Equal(t, wired(theirs), wired(def), "%s: run the test with -update", def.Name)
		}
	}
	_, ok := For(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	require.False(t, ok)
	back, err := all[corev1.SchemeGroupVersion.WithKind("Pod")], error(nil)
	require.NoError(t, err)
	types, _ := For(corev1.SchemeGroupVersion.WithKind("Pod"))
	document, err := types.TypedToObject(back)
	require.NoError(t, err)
	again, err := types.ObjectToTyped(document)
	require.NoError(t, err)
	require.Equal(t, back.AsValue().Unstructured(), again.AsValue().Unstructured())
}

// write writes types.json.
func write(t *testing.T, all map[schema.GroupVersionKind]*typed.TypedValue) {
	packages, lines := map[string]string{}, []string{}
	for kind, value := range all {
		name := *value.TypeRef().NamedType
		packages[kind.Group] = strings.TrimSuffix(name, "."+kind.Version+"."+kind.Kind)
		if len(lines) > 0 {
			continue
		}
		for _, def := range value.Schema().Types { // which are those of all kinds
			line, err := json.Marshal(wired(def))
			require.NoError(t, err)
			lines = append(lines, string(line))
		}
	}
	slices.Sort(lines)
	first, err := json.Marshal(packages)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("types.json", []byte(string(first)+"\n"+strings.Join(lines, "\n")+"\n"), 0o644))
}

// wired is a type as types.json has it.
func wired(def smd.TypeDef) definition { return definition{Name: def.Name, atom: wiredAtom(def.Atom)} }

func wiredAtom(a smd.Atom) (made atom) {
	if a.Scalar != nil {
		made.Scalar = *a.Scalar
	}
	if a.List != nil {
		made.List = &list{Element: wiredReference(a.List.ElementType), Relation: a.List.ElementRelationship, Keys: a.List.Keys}
	}
	if a.Map == nil {
		return made
	}
	made.Map = &object{Relation: a.Map.ElementRelationship, Unions: a.Map.Unions}
	if element := wiredReference(a.Map.ElementType); element != (reference{}) {
		made.Map.Element = &element
	}
	for _, f := range a.Map.Fields {
		made.Map.Fields = append(made.Map.Fields, field{Name: f.Name, Type: wiredReference(f.Type), Default: wiredDefault(f.Default)})
	}
	return made
}

func wiredReference(r smd.TypeRef) (made reference) {
	made.Relation, made.Nullable = r.ElementRelationship, r.Nullable
	if r.NamedType != nil {
		made.Named = *r.NamedType
	}
	if inlined := wiredAtom(r.Inlined); inlined != (atom{}) {
		made.Inlined = &inlined
	}
	return made
}

// wiredDefault is a default as JSON has it. That of a map is empty.
func wiredDefault(value any) any {
	switch v := value.(type) {
	case map[any]any, map[string]any:
		return map[string]any{}
	case int:
		return float64(v)
	case int64:
		return float64(v)
	}
	return value
}

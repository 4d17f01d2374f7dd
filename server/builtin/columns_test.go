package builtin

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
)

var update = flag.Bool("update", false, "write testdata/cells.txt anew")

// TestCells: each cell of columns.txt can be made of an empty object and of a full one, and says of
// the full one what testdata/cells.txt has.
func TestCells(t *testing.T) {
	of := map[string]func() store.Object{}
	for _, r := range kinds() {
		of[r.Kind.Kind] = r.Kind.Empty
	}
	var lines strings.Builder
	kind := ""
	for line := range strings.Lines(strings.ReplaceAll(columnsText, "\n\t\t", "")) {
		text, isColumn := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
		if !isColumn {
			if !strings.HasPrefix(text, "#") && text != "" {
				require.Contains(t, of, text)
				kind = text
			}
			continue
		}
		head, cell, written := strings.Cut(text, " = ")
		if !written {
			require.Contains(t, []string{age.Name, createdAt.Name}, head)
			continue
		}
		parsed, err := template.New(head).Funcs(functions).Parse(cell)
		require.NoError(t, err)
		require.NoError(t, parsed.Execute(&strings.Builder{}, of[kind]()), "%s %s", kind, head)
		full := of[kind]()
		fill(reflect.ValueOf(full).Elem(), 0)
		require.NoError(t, parsed.Execute(&strings.Builder{}, full), "%s %s", kind, head)
		fmt.Fprintf(&lines, "%s, %s: %#v\n", kind, head, parseColumn(text).Value(full))
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/cells.txt", []byte(lines.String()), 0o644))
	}
	want, err := os.ReadFile("testdata/cells.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), lines.String(), "if this is meant, run with -update")
}

// fill fills all fields of a value: lists and maps have one element.
func fill(v reflect.Value, depth int) {
	switch at := v.Addr().Interface().(type) {
	case *metav1.Time:
		*at = metav1.NewTime(time.Now().Add(-49 * time.Hour))
		return
	case *metav1.MicroTime:
		*at = metav1.NewMicroTime(time.Now().Add(-49 * time.Hour))
		return
	case *resource.Quantity:
		*at = resource.MustParse("5Gi")
		return
	}
	if depth > 12 {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("Text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(7)
	}
}

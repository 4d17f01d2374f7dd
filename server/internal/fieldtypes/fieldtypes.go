// Package fieldtypes has the types of the fields of the built-in kinds, as client-go has them for
// server-side apply, without client-go's price: its schema is YAML that takes 70 ms to read, and
// its scheme adds 16 MB to a program. Here, a kind's types are read when they are first needed.
package fieldtypes

import (
	_ "embed" // the types
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// text has the names of groups in its first line, and then a type on each line: a schema of OpenAPI
// by its name. A test writes it.
//
//go:embed types.json
var text string

// contents are the lines of the text.
type contents struct {
	packages map[string]string // the beginning of the names of a group's types, by group
	types    map[string]string // JSON by name
}

var read = sync.OnceValue(func() (c contents) {
	first, rest, _ := strings.Cut(text, "\n")
	if err := json.Unmarshal([]byte(first), &c.packages); err != nil {
		panic(err) // it is part of the program
	}
	c.types = map[string]string{}
	for line := range strings.Lines(rest) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, opening), `"`)
		c.types[name] = line
	}
	return c
})

// opening is the beginning of every type.
const opening = `{"`

// For returns the types of a kind; ok is false for kinds that client-go does not have. It is cheap:
// the types are read when an object is converted first.
func For(kind schema.GroupVersionKind) (types managedfields.TypeConverter, ok bool) {
	c := read()
	name := c.packages[kind.Group] + "." + kind.Version + "." + kind.Kind
	if _, ok := c.types[name]; !ok {
		return nil, false
	}
	parsed := sync.OnceValue(func() managedfields.TypeConverter { return c.parse(name, kind) })
	return Choose(func(runtime.Object) managedfields.TypeConverter { return parsed() }), true
}

// parse reads a type, and all types of its fields.
func (c contents) parse(name string, kind schema.GroupVersionKind) managedfields.TypeConverter {
	all := map[string]*spec.Schema{}
	var add func(name string)
	add = func(name string) {
		if all[name] != nil || strings.HasPrefix(name, "__untyped_") { // which the library has
			return
		}
		if err := json.Unmarshal([]byte(c.types[name]), &all); err != nil {
			panic(fmt.Sprintf("fieldtypes: %s: %v", name, err)) // TestTypes reads them all
		}
		for field, property := range all[name].Properties {
			if number, ok := property.Default.(float64); ok { // there are integers alone
				property.Default = int64(number)
				all[name].Properties[field] = property
			}
		}
		for _, part := range strings.Split(c.types[name], referring)[1:] {
			referred, _, _ := strings.Cut(part, `"`)
			add(referred)
		}
	}
	add(name)
	all[name].AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind},
	})
	types, err := managedfields.NewTypeConverter(all, false)
	if err != nil {
		panic(fmt.Sprintf("fieldtypes: %s: %v", name, err)) // TestTypes reads them all
	}
	return types
}

// referring stands before the name of a field's type.
const referring = `"$ref":"#/definitions/`

// Choose converts each object by the types that pick returns for it.
func Choose(pick func(runtime.Object) managedfields.TypeConverter) managedfields.TypeConverter {
	return choose(pick, managedfields.NewDeducedTypeConverter())
}

// typeConverter is managedfields.TypeConverter. Its types are of the library's own release, whose
// path is not that of the next one: they are inferred, so that they need no name.
type typeConverter[O, V any] interface {
	ObjectToTyped(runtime.Object, ...O) (*V, error)
	TypedToObject(*V) (runtime.Object, error)
}

func choose[O, V any](pick func(runtime.Object) managedfields.TypeConverter, back typeConverter[O, V]) *chosen[O, V] {
	return &chosen[O, V]{back, pick}
}

type chosen[O, V any] struct {
	typeConverter[O, V] // TypedToObject is the same for all
	pick                func(runtime.Object) managedfields.TypeConverter
}

func (c *chosen[O, V]) ObjectToTyped(obj runtime.Object, o ...O) (*V, error) {
	return c.pick(obj).(typeConverter[O, V]).ObjectToTyped(obj, o...)
}

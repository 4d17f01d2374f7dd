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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// text has the names of groups in its first line, and then a type on each line. A test writes it.
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
const opening = `{"Name":"`

// For returns the types of a kind; ok is false for kinds that client-go does not have. It is cheap:
// the types are read when an object is converted first.
func For(kind schema.GroupVersionKind) (types managedfields.TypeConverter, ok bool) {
	c := read()
	name := c.packages[kind.Group] + "." + kind.Version + "." + kind.Kind
	if _, ok := c.types[name]; !ok {
		return nil, false
	}
	return converter(sync.OnceValue(func() typed.ParseableType { return c.parse(name) })), true
}

// parse reads a type, and all types of its fields.
func (c contents) parse(name string) typed.ParseableType {
	parser := &typed.Parser{}
	seen := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		var d definition
		if err := json.Unmarshal([]byte(c.types[name]), &d); err != nil {
			panic(fmt.Sprintf("fieldtypes: %s: %v", name, err)) // TestTypes reads them all
		}
		parser.Schema.Types = append(parser.Schema.Types, smd.TypeDef{Name: d.Name, Atom: d.schema()})
		for _, part := range strings.Split(c.types[name], referring)[1:] {
			referred, _, _ := strings.Cut(part, `"`)
			add(referred)
		}
	}
	add(name)
	return parser.Type(name)
}

// referring stands before the name of a field's type.
const referring = `"Named":"`

// converter is the type of one kind.
type converter func() typed.ParseableType

// ObjectToTyped implements managedfields.TypeConverter.
func (c converter) ObjectToTyped(obj runtime.Object, o ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if document, ok := obj.(*unstructured.Unstructured); ok {
		return c().FromUnstructured(document.Object, o...)
	}
	return c().FromStructured(obj, o...)
}

// TypedToObject implements managedfields.TypeConverter.
func (converter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	content, ok := value.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("fieldtypes: an object is a %T", value.AsValue().Unstructured())
	}
	return &unstructured.Unstructured{Object: content}, nil
}

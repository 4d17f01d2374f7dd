package builtin

import (
	"reflect"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// typed is the same description for the Go type of the objects.
func typed[T store.Object](r anyResource) apiserver.Resource[T] {
	return apiserver.Resource[T]{Kind: typedKind[T](r.Kind), Rules: typedRules[T](r.Rules), View: typedView[T](r.View)}
}

func typedKind[T store.Object](k watchcache.Kind[store.Object]) watchcache.Kind[T] {
	t := watchcache.Kind[T]{
		Group: k.Group, Version: k.Version, Plural: k.Plural, Kind: k.Kind, ClusterScoped: k.ClusterScoped,
	}
	for _, f := range k.Fields {
		t.Fields = append(t.Fields, watchcache.Field[T]{
			Label: f.Label, Indexed: f.Indexed, Value: func(obj T) string { return f.Value(obj) },
		})
	}
	return t
}

func typedRules[T store.Object](r collection.Rules[store.Object]) collection.Rules[T] {
	t := collection.RulesAs(r, untyped[T], func(obj T, change func(store.Object)) { change(obj) })
	t.ReturnDeleted, t.Dependents, t.Scale = r.ReturnDeleted, r.Dependents, r.Scale
	return t
}

func typedView[T store.Object](v apiserver.View[store.Object]) apiserver.View[T] {
	t := apiserver.View[T]{ShortNames: v.ShortNames, Categories: v.Categories, Subresources: v.Subresources}
	for _, c := range v.Columns {
		t.Columns = append(t.Columns, apiserver.Column[T]{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description, Wide: c.Wide, Value: func(obj T) any { return c.Value(obj) },
		})
	}
	return t
}

// untyped is an object as a rule sees it: nil if there is none.
func untyped[T store.Object](obj T) store.Object {
	if value := reflect.ValueOf(obj); !value.IsValid() || value.IsNil() {
		return nil
	}
	return obj
}

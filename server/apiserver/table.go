package apiserver

import (
	"cmp"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/store"
)

// nameColumn shows the name; every table starts with it, unless it has a column of that name.
func nameColumn[T store.Object]() Column[T] {
	return Column[T]{
		Name: "Name", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"],
		Value: func(obj T) any { return obj.GetName() },
	}
}

// tableColumns are all columns of a table; given are those of a [View].
func tableColumns[T store.Object](given []Column[T]) []Column[T] {
	name := nameColumn[T]()
	named := func(c Column[T]) bool { return c.Name == name.Name }
	switch {
	case len(given) == 0:
		return []Column[T]{name, AgeColumn[T]()}
	case slices.ContainsFunc(given, named):
		return given
	}
	return append([]Column[T]{name}, given...)
}

func (c codec[T]) definitions(f format) []metav1.TableColumnDefinition {
	if f.headless {
		return nil
	}
	definitions := make([]metav1.TableColumnDefinition, 0, len(c.columns))
	for _, column := range c.columns {
		d := metav1.TableColumnDefinition{
			Name: column.Name, Type: cmp.Or(column.Type, "string"), Format: column.Format, Description: column.Description,
		}
		if column.Wide {
			d.Priority = 1
		}
		definitions = append(definitions, d)
	}
	return definitions
}

func (c codec[T]) row(f format, obj T) (metav1.TableRow, error) {
	row := metav1.TableRow{Cells: make([]any, 0, len(c.columns))}
	for _, column := range c.columns {
		row.Cells = append(row.Cells, column.Value(obj))
	}
	carried := plainJSON
	switch f.rows {
	case metav1.IncludeNone:
		return row, nil
	case metav1.IncludeMetadata:
		carried.view = asMetadata
	}
	doc, err := c.object(carried, obj)
	row.Object = runtime.RawExtension{Raw: json.RawMessage(doc)}
	return row, err
}

package watchcache

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tributary-go/tributary/store"
)

// Column is one column of a table (kubectl get).
type Column[T store.Object] struct {
	// Name is the heading; kubectl writes it in capitals.
	Name string
	// Wide columns are shown by kubectl get -o wide alone.
	Wide bool
	// Value is the cell: a string, a bool, an int64 or a float64.
	Value func(obj T) any
}

// nameColumn shows the name; every table starts with it.
func nameColumn[T store.Object]() Column[T] {
	return Column[T]{Name: "Name", Value: func(obj T) any { return obj.GetName() }}
}

// AgeColumn shows the time since the creation, as kubectl does.
func AgeColumn[T store.Object]() Column[T] {
	return Column[T]{Name: "Age", Value: func(obj T) any {
		created := obj.GetCreationTimestamp()
		if created.IsZero() {
			return "<unknown>"
		}
		return duration.HumanDuration(time.Since(created.Time))
	}}
}

// tableColumns are all columns of a resource.
func tableColumns[T store.Object](resource Resource[T]) []Column[T] {
	columns := []Column[T]{nameColumn[T]()}
	if len(resource.Columns) == 0 {
		return append(columns, AgeColumn[T]())
	}
	return append(columns, resource.Columns...)
}

func (c codec[T]) definitions() []metav1.TableColumnDefinition {
	definitions := make([]metav1.TableColumnDefinition, 0, len(c.columns))
	for i, column := range c.columns {
		d := metav1.TableColumnDefinition{Name: column.Name, Type: "string"}
		if i == 0 {
			d.Format = "name"
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
	carried := format{}
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

package apiserver

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tributary-go/tributary/store"
)

// Column is one column of a table (kubectl get).
type Column[T store.Object] struct {
	// Name is the heading; kubectl writes it in capitals.
	Name string
	// Type is the OpenAPI type of the cells, such as "integer"; empty means "string".
	Type string
	// Format is the OpenAPI format of the cells, such as "int32"; empty means none.
	Format string
	// Description explains the cells to people.
	Description string
	// Wide columns are shown by kubectl get -o wide alone.
	Wide bool
	// Value is the cell: a string, a bool, an int64, a float64, or nil if the object has none.
	Value func(obj T) any
}

// AgeColumn shows the time since the creation, as kubectl does.
func AgeColumn[T store.Object]() Column[T] {
	return Column[T]{Name: "Age", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"], Value: func(obj T) any {
		created := obj.GetCreationTimestamp()
		if created.IsZero() {
			return "<unknown>"
		}
		return duration.HumanDuration(time.Since(created.Time))
	}}
}

package watchcache

import (
	"time"

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

// Package null finds arguments that are missing.
package null

import "reflect"

// Is reports whether v is nil: no value, or a nil pointer or function, also inside an interface. A
// nil pointer inside an interface is not equal to nil: client-go's fake clientsets give one as
// their REST client.
func Is(v any) bool {
	if v == nil {
		return true
	}
	value := reflect.ValueOf(v)
	kind := value.Kind()
	return (kind == reflect.Pointer || kind == reflect.Func) && value.IsNil()
}

// Package null finds arguments that are missing.
package null

import (
	"errors"
	"fmt"
	"reflect"
)

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

// Options calls apply for each option, and returns an error that counts those that are nil. op
// names the function that was given them.
func Options[O any](op string, list []O, apply func(O)) error {
	var all []error
	for i, option := range list {
		if Is(option) {
			all = append(all, fmt.Errorf("%s: option %d is nil: leave it out", op, i+1))
			continue
		}
		apply(option)
	}
	return errors.Join(all...)
}

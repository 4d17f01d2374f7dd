// Package pointer compares objects by pointer without asking that their type is comparable: a
// constraint with comparable would have each type of object compile a copy of all generic code,
// where types of pointers otherwise share one.
package pointer

// Same reports whether a and b are one object in memory.
func Same[T any](a, b T) bool { return any(a) == any(b) }

// None reports whether obj is the zero T, such as a nil pointer.
func None[T any](obj T) bool {
	var none T
	return any(obj) == any(none)
}

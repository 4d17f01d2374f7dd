package harness

import (
	"fmt"

	"golang.org/x/sync/errgroup"
)

// failure is the panic of a measurement that cannot go on.
type failure struct{ error }

// Must returns the value, and ends the measurement if there is an error.
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Check ends the measurement if there is an error.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Fail ends the measurement.
func Fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// Try returns the error by which something has ended.
func Try(do func()) (err error) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case failure:
			err = reason.error
		default:
			panic(reason)
		}
	}()
	do()
	return nil
}

// Within names the part of a measurement in which an error comes up.
func Within(name any, do func()) {
	if err := Try(do); err != nil {
		Fail("%v: %w", name, err)
	}
}

// AtOnce does something for each number below n, at most so many at a time. It fails if one of them
// does.
func AtOnce(n, most int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(most)
	for i := range n {
		group.Go(func() error { return Try(func() { do(i) }) })
	}
	Check(group.Wait())
}

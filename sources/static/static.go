package static

import (
	"context"
	"errors"
	"slices"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/sources/health"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/store"
)

// Decode turns the bytes of a file, or of an answer, into objects. path names the file or URL for
// errors. Each error stands for a part that gave no object, and costs only that part. An error may
// have a method Part() (key, digest string): the key of the object that the part declares, and a
// digest that tells the part from others. The errors of the package manifest have it. Errors must
// not repeat the content. An error of [Warning] costs nothing.
//
// One goroutine calls Decode at a time, and the reader owns the result. An object that goes into a
// store should have no resource version, or one that changes with the object. The package manifest
// has decoders for API types.
type Decode[T store.Object] func(path string, data []byte) (objects []T, rejected []error)

// Warning marks an error of a Decode function that costs no part, such as a field that is dropped.
// [health.Report].Warnings has it, beside the objects.
func Warning(err error) error { return warning{err} }

type warning struct{ error }

func (w warning) Unwrap() error { return w.error }

// State holds all objects that a reader has found at one moment. It is read-only.
type State[T store.Object] struct {
	Objects store.Snapshot[T]
	// Declared has the same objects in the order of their declaration: by path, then by place in
	// it.
	Declared []T
}

// Reader reads objects from one place. Make one with [File] or [HTTP], and run it once.
type Reader[T store.Object] struct {
	kind    string
	decodes bool // there is a function for it
	ordered bool
	keeper  *access.Keeper
	run     func(ctx context.Context, set func(State[T])) error
}

// Kind is "file" or "http".
func (r *Reader[T]) Kind() string { return r.kind }

// Ordered reports whether the order of [State].Declared has a meaning. In an answer it has; the
// files of a folder have only names.
func (r *Reader[T]) Ordered() bool { return r.ordered }

// Run reads until ctx ends, which is no error. It hands the first state to set, and then each state
// that differs from the last one, on the goroutine of Run. It fails at once if an option, the path
// or the address cannot be used, or if the Decode function is nil.
func (r *Reader[T]) Run(ctx context.Context, set func(State[T])) error {
	if !r.decodes {
		return errors.New("static: the function that decodes is nil")
	}
	told, last := false, State[T]{}
	return r.run(ctx, func(now State[T]) {
		if told && slices.EqualFunc(last.Declared, now.Declared, pointer.Same[T]) {
			return
		}
		told, last = true, now
		set(now)
	})
}

// Report returns the present health of the reader. It is safe for concurrent use.
func (r *Reader[T]) Report() health.Report { return r.keeper.Read() }

// Into returns a function for [Reader.Run] that writes each state into a store by one Replace. If
// the store refuses a state, Into calls failed on the goroutine of Run; a nil failed ignores the
// error. Into panics if the store is nil.
func Into[T store.Object](st store.Store[T], failed func(error)) func(State[T]) {
	if null.Is(st) {
		panic("static: Into: the store is nil")
	}
	return func(now State[T]) {
		if err := st.Replace(store.Items(now.Declared...), store.At("")); err != nil && failed != nil {
			failed(err)
		}
	}
}

package static

import (
	"context"
	"errors"
	"slices"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/sources/health"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/store"
)

// Decode turns the bytes of a file, or of an answer, into objects. path names what is read, for
// errors. An error stands for a part that gave no object, and costs only that. An error with a
// method Part() (key, digest string) says which object the part declares, and what tells it from
// others; the errors of the package manifest have it. Errors must not repeat the content. It is
// called by one goroutine at a time, and what it returns is the reader's. Objects that go into a
// store should have no resource version, or one that changes with them. The package manifest has
// decoders for API types.
type Decode[T store.Object] func(path string, data []byte) (objects []T, rejected []error)

// State is everything that a reader has found at one moment. It is read-only.
type State[T store.Object] struct {
	Objects store.Snapshot[T]
	// Declared is the same objects in the order in which they are declared: by path, then by place in it.
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

// Ordered reports whether the order of [State].Declared is the author's: an answer has an order, and
// the files of a folder have only names.
func (r *Reader[T]) Ordered() bool { return r.ordered }

// Run reads until ctx ends, which is no error, and hands states to set, on the goroutine of Run:
// the first one, and then each for which something was read anew or has gone. It fails at once on
// options, a path or an address that cannot be used, and if the function that decodes is nil.
func (r *Reader[T]) Run(ctx context.Context, set func(State[T])) error {
	if !r.decodes {
		return errors.New("static: the function that decodes is nil")
	}
	told, last := false, State[T]{}
	return r.run(ctx, func(now State[T]) {
		if told && slices.Equal(last.Declared, now.Declared) {
			return
		}
		told, last = true, now
		set(now)
	})
}

// Report is the health of the reader now. It is safe for concurrent use.
func (r *Reader[T]) Report() health.Report { return r.keeper.Read() }

// Into hands states to a store, for [Reader.Run], by a Replace each. failed is told when the store does not take one, on the
// goroutine of Run; nil ignores that. It panics if the store is nil.
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

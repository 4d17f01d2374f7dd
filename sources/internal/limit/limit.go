// Package limit has the bounds of files and of answers of URLs: too large, empty, and nothing that
// was asked for. It is apart from the package manifest so that a reader of other objects does not
// link the rules for pods.
package limit

import "errors"

// Size bounds a file or an answer: it must have fewer bytes. The bound is the kubelet's.
const Size = 10 << 20

// ErrEmpty refuses a manifest without a document.
var ErrEmpty = errors.New("manifest has no document; a PodList without items says that there are no pods")

// ErrTooLarge refuses a file or an answer of Size bytes or more.
var ErrTooLarge = errors.New("manifest is too large")

// ErrForeign is in the error of a part that declares no object of the wanted kind, readable or not:
// the page of a login, a Status, half of a text.
var ErrForeign = errors.New("not of the wanted kind")

// Foreign adds ErrForeign to an error, and leaves its text as it is.
func Foreign(err error) error { return foreign{err} }

type foreign struct{ error }

func (f foreign) Unwrap() error        { return f.error }
func (f foreign) Is(target error) bool { return target == ErrForeign }

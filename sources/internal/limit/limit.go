// Package limit has the bounds of files and of answers of URLs: too large, and empty. It is apart
// from the package manifest so that a reader of other objects does not link the rules for pods.
package limit

import "errors"

// Size bounds a file or an answer: it must have fewer bytes. The bound is the kubelet's.
const Size = 10 << 20

// ErrEmpty refuses a manifest without a document.
var ErrEmpty = errors.New("manifest has no document; a PodList without items says that there are no pods")

// ErrTooLarge refuses a file or an answer of Size bytes or more.
var ErrTooLarge = errors.New("manifest is too large")

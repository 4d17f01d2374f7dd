package controllerruntime

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Lean keeps no whole objects of these kinds but those that are read by name, in all versions and
// forms that are given. [Cache.Get] reads an object once, follows it, and lets it go when it has
// not been read for five minutes ([LeanIdle]). The package documentation has the rules.
//
// Metadata is not lean. A read, watch or index of metav1.PartialObjectMetadata has the metadata of
// all objects, as ever. If nothing in the program asks for it, nothing is kept.
//
// A List, an informer and an index of whole objects fail with [ErrLean].
func Lean(objects ...client.Object) Option {
	return func(e *extras) { e.lean.objects = append(e.lean.objects, objects...) }
}

// LeanIdle sets how long an object of a lean kind is kept without a read. The next Get reads it
// again, by one request. Default 5 minutes, as in the kubelet; 0: for ever. An object that a
// request of [Reads] has read is kept as long as the request refers to it.
func LeanIdle(d time.Duration) Option { return func(e *extras) { e.lean.idle = d } }

// ErrLean is the cause if a kind is lean, and whole objects of it are listed, watched or indexed.
var ErrLean = errors.New("the kind is lean: of whole objects, the cache has only those that are read by name")

// lean is the options for lean kinds.
type lean struct {
	objects []client.Object
	idle    time.Duration
	kinds   map[schema.GroupVersionKind]bool // of objects
}

// defaultLeanIdle is the kubelet's.
const defaultLeanIdle = 5 * time.Minute

// resolve finds the kinds of the objects.
func (l lean) resolve(from sources) (lean, error) {
	l.kinds = map[schema.GroupVersionKind]bool{}
	if l.idle < 0 {
		return l, fmt.Errorf("LeanIdle(%s): give a positive duration, or 0 for ever", l.idle)
	}
	for _, obj := range l.objects {
		gvk, err := apiutil.GVKForObject(obj, from.scheme)
		switch {
		case err != nil:
			return l, fmt.Errorf("Lean: %T: %w", obj, err)
		case formOf(obj) == metadata:
			return l, fmt.Errorf("Lean: %s: metadata is kept of all objects: give the kind's own type, or an unstructured object", gvk)
		}
		l.kinds[gvk] = true
	}
	return l, nil
}

// has reports whether a kind's objects of that form are kept by name.
func (l lean) has(k kind) bool { return k.form != metadata && l.kinds[k.GroupVersionKind] }

// refuse returns an error if a kind is lean.
func (l lean) refuse(op string, k kind, remedy string) error {
	if !l.has(k) {
		return nil
	}
	return fmt.Errorf("controllerruntime: %s %s: %w: %s, or take the kind out of Lean", op, k.Kind, ErrLean, remedy)
}

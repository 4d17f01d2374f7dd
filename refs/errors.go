package refs

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// Error is the reason why the state of a name is not known to be current.
type Error struct {
	// Name is the object.
	Name types.NamespacedName
	// Class is the class of the last failure; [reflector.NotFound] if the server has no such
	// object, or no such resource; [reflector.OK] if no request has failed yet.
	Class reflector.Class
	// Since is the time at which the state was last known to be the server's. It is zero if no
	// state was ever read, and for an object that does not exist.
	Since time.Time
	// Err is the cause. apierrors.IsNotFound and apierrors.IsForbidden know it.
	Err error
}

// Error is one line: name, time, class and cause.
func (e *Error) Error() string {
	var line strings.Builder
	fmt.Fprintf(&line, "refs: %s: ", store.Key(e.Name.Namespace, e.Name.Name))
	switch {
	case !e.Since.IsZero():
		fmt.Fprintf(&line, "stale since %s: ", e.Since.Format(time.TimeOnly))
	case e.Class != reflector.NotFound && !errors.Is(e.Err, ErrNotReferred):
		line.WriteString("not read yet: ")
	}
	if e.Class != reflector.OK {
		fmt.Fprintf(&line, "%s: ", e.Class)
	}
	fmt.Fprint(&line, e.Err)
	return line.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

var (
	// ErrNotReferred is the cause if no owner has the name.
	ErrNotReferred = errors.New("no owner refers to it: call SetOwner or AddNames first")
	// ErrStopped is the cause after Run has ended.
	ErrStopped = errors.New("Run has ended")

	errNotRun     = errors.New("nobody has called Run")
	errNotCurrent = errors.New("the state is not current")

	// Why a watch was ended.
	errAgain    = errors.New("the state is read again")
	errKept     = errors.New("the object is immutable")
	errIdle     = errors.New("nobody reads the object")
	errReleased = errors.New("no owner refers to the object")
	errEnded    = errors.New("Run ends")
	errShared   = errors.New("the namespace is watched")
	errAlone    = errors.New("the namespace has few names")

	// Faults of an answer.
	errIncomparable = errors.New("the resource versions of the server have no order")
	errOther        = errors.New("the source answered with an object of another name: it must obey the field selector metadata.name")
)

// answers reports whether a failure is the server's answer about this name, for which Get does not
// wait.
func answers(class reflector.Class) bool {
	switch class {
	case reflector.Forbidden, reflector.Unauthorized, reflector.NotFound, reflector.Refused, reflector.Undecodable:
		return true
	}
	return false
}

// answers reports whether f is the server's answer about this name.
func (f *failure) answers() bool { return f != nil && !f.starts && answers(f.class) }

// notFound is the error for an object that does not exist; its resource is T's name.
func notFound[T store.Object](name types.NamespacedName) error {
	kind := reflect.TypeFor[T]()
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	return &Error{Name: name, Class: reflector.NotFound, Err: apierrors.NewNotFound(schema.GroupResource{Resource: kind.Name()}, name.Name)}
}

package refs

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// asksAgain is how old the answer of a failed attempt may be before a Get asks again.
const asksAgain = time.Second

// Get returns the object of a name. It waits for the first state, and for a state that must be read
// again: of a name that an owner has got since, and of a name that was idle. It waits until ctx
// ends, but not for a server that has refused the request.
//
// Errors are *[Error], with a class and a cause:
//
//   - apierrors.IsNotFound is true if the server has no such object.
//   - apierrors.IsForbidden is true if the rights are missing.
//   - [Error].Since is set if the state was read once, and the last attempt to follow it failed.
//     The object is then the last known state, or nil if there was none.
//   - [ErrNotReferred] if no owner has the name.
//
// The object is shared and read-only.
func (r *Refs[T]) Get(ctx context.Context, namespace, name string) (T, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	var obj T
	var why error
	err := r.await(ctx, key, func(e *entry[T]) bool {
		e.used = time.Now()
		var done bool
		obj, why, done = r.answer(e)
		return done
	})
	if err != nil {
		obj, why = r.unfinished(key, err)
	}
	return obj, why
}

// await blocks until done holds for the entry of a name. done is called under the lock.
func (r *Refs[T]) await(ctx context.Context, name types.NamespacedName, done func(*entry[T]) bool) error {
	for {
		r.mu.Lock()
		e := r.names[name]
		if e == nil {
			r.mu.Unlock()
			return ErrNotReferred
		}
		if done(e) {
			r.mu.Unlock()
			return nil
		}
		changed := e.signal.Wait() // it is told under the lock, so that nothing comes in between
		if e.run != nil {
			e.run.rush()
		}
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.over.Done():
			return context.Cause(r.over)
		}
	}
}

// answer returns the result of Get for an entry; done is false if Get must wait.
func (r *Refs[T]) answer(e *entry[T]) (obj T, err error, done bool) {
	if r.running == nil {
		return obj, nil, false
	}
	if e.current() {
		if pointer.None(e.obj) {
			return obj, notFound[T](e.name), true
		}
		return e.obj, nil, true
	}
	if e.returning() { // the watch of the namespace is made again
		e.space.run.rush()
		return obj, nil, false
	}
	if e.run == nil || e.phase == following {
		r.again(e)
		return obj, nil, false
	}
	f := e.failure
	if f.answers() && time.Since(f.at) > asksAgain && e.run.asked.IsZero() && e.run.delay > 0 {
		r.again(e)
		e.failure = nil
		return obj, nil, false
	}
	if f = r.trouble(e); f != nil && (e.known || f.answers()) {
		return e.obj, &Error{Name: e.name, Class: f.class, Since: e.lastContact(), Err: f.err}, true
	}
	return obj, nil, false
}

// unfinished returns the result of a Get whose wait ended with err.
func (r *Refs[T]) unfinished(name types.NamespacedName, err error) (obj T, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.names[name]
	switch {
	case errors.Is(err, ErrNotReferred) || e == nil:
		return obj, &Error{Name: name, Class: reflector.OK, Err: err}
	case errors.Is(err, ErrStopped):
		return e.obj, &Error{Name: name, Class: reflector.OK, Since: e.lastContact(), Err: err}
	}
	return e.obj, r.whyNot(e, err)
}

// WaitFor blocks until the state of obj's name is obj, as a write returned it, or a later one: a
// newer version, its deletion, or an object created in its place. A Get afterwards includes the
// write.
//
// It blocks until ctx ends. It fails at once if obj has no resource version, and if no owner has
// the name.
func (r *Refs[T]) WaitFor(ctx context.Context, obj T) error {
	return r.waitFor(ctx, obj, func(*entry[T]) bool { return true })
}

// WaitForDeletion blocks until obj, by its UID, does not exist any more. obj is any version that
// the server returned. Otherwise it is as [Refs.WaitFor].
func (r *Refs[T]) WaitForDeletion(ctx context.Context, obj T) error {
	return r.waitFor(ctx, obj, func(e *entry[T]) bool { return pointer.None(e.obj) || e.obj.GetUID() != obj.GetUID() })
}

func (r *Refs[T]) waitFor(ctx context.Context, obj T, holds func(*entry[T]) bool) error {
	if pointer.None(obj) || obj.GetName() == "" || obj.GetResourceVersion() == "" {
		return errors.New("refs: wait: the object is nil, or has no name or resource version: give the object that the server returned")
	}
	name := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	var read uint64 // a state that covers it was read after the call
	err := r.await(ctx, name, func(e *entry[T]) bool {
		e.used = time.Now()
		held, wanted := store.Version(e.complete()), store.VersionOf(obj)
		reached := e.known && (held.Reaches(wanted) || read > 0 && e.covered >= read)
		if reached && holds(e) {
			return true
		}
		_, comparable := held.Compare(wanted)
		unordered := e.known && !comparable // the first state may be on its way, and have a version
		if r.running != nil && read == 0 && (unordered || e.phase == idle || e.phase == kept) {
			r.want(e) // nothing follows the name, or versions have no order: read it again
			read = e.wanted
			r.again(e)
		}
		return false
	})
	if err != nil {
		_, err = r.unfinished(name, err)
	}
	return err
}

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

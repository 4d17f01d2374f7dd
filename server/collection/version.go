package collection

import (
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// Version is a further version of the API for the objects of a collection, in another Go type, and
// maybe in another group. The objects stay stored in the collection's own version. Both functions
// return a new object, which may share its parts with the given one, and keep the metadata but for
// annotations that hold fields.
type Version struct {
	// Kind names the objects in this version. It needs New, and its Fields are not used.
	Kind watchcache.Kind[store.Object]
	// To makes an object of this version of a stored one.
	To func(stored store.Object) store.Object
	// From makes the object that is stored of one of this version.
	From func(obj store.Object) store.Object
	// Labels are the field labels that selectors may use in this version beside metadata.name and
	// metadata.namespace, with the labels that the stored kind has for them.
	Labels map[string]string
}

// In is the collection for clients that write a version of its [Rules.Versions]: objects are read
// from the storage in that version, and so are patches applied and the owners of fields kept. It
// has no cache to read. It fails as [On] does.
func (c *Collection[T]) In(v Version) (*Collection[store.Object], error) {
	none, err := watchcache.NewCache(v.Kind)
	if err != nil {
		return nil, err
	}
	return newCollection(none, rulesIn(c, v), Storage[store.Object](converted[T]{c, v}), c.part)
}

// rulesIn are the rules of a collection for objects of a version.
func rulesIn[T store.Object](c *Collection[T], v Version) Rules[store.Object] {
	r := RulesAs(c.rules, func(obj store.Object) T { return storedAs[T](v, obj) },
		func(obj store.Object, change func(T)) { edit(v, obj, change) })
	r.stored = c.Kind().GroupVersionKind()
	r.keepStatus = func(next, stored store.Object) {
		edit(v, next, func(next T) { object.Status.Move(next, storedAs[T](v, stored)) })
	}
	return r
}

// RulesAs are rules of objects in one Go type for the same objects in another one. as returns an
// object in the type of the rules, or nothing for nothing; edit has a change made to an object.
func RulesAs[A, B store.Object](of Rules[A], as func(B) A, edit func(obj B, change func(A))) Rules[B] {
	r := Rules[B]{
		BuiltIn: of.BuiltIn, UnconditionalUpdate: of.UnconditionalUpdate, Generation: of.Generation, ValidName: of.ValidName,
		PlainFinalizers: of.PlainFinalizers, CreateStatus: of.CreateStatus, PlainStatus: of.PlainStatus, Versions: of.Versions,
	}
	if of.Default != nil {
		r.Default = func(obj B) { edit(obj, of.Default) }
	}
	if of.Complete != nil {
		r.Complete = func(obj, stored B) { edit(obj, func(obj A) { of.Complete(obj, as(stored)) }) }
	}
	if of.Validate != nil {
		r.Validate = func(obj, stored B) field.ErrorList { return of.Validate(as(obj), as(stored)) }
	}
	if of.Create != nil {
		r.Create = func(obj B) error { return of.Create(as(obj)) }
	}
	if of.Delete != nil {
		r.Delete = func(obj B) { edit(obj, of.Delete) }
	}
	if of.Held != nil {
		r.Held = func(obj B) bool { return of.Held(as(obj)) }
	}
	return r
}

// storedAs is an object of a version as it is stored; nothing if there is none.
func storedAs[T store.Object](v Version, obj store.Object) (stored T) {
	if obj == nil {
		return stored
	}
	return v.From(obj).(T)
}

// edit has a rule of the stored kind change an object of a version.
func edit[T store.Object](v Version, obj store.Object, change func(T)) {
	stored := v.From(obj).DeepCopyObject().(T) // a rule may write into any part
	change(stored)
	kind := obj.GetObjectKind().GroupVersionKind()
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(v.To(stored)).Elem())
	obj.GetObjectKind().SetGroupVersionKind(kind)
}

// converted is the storage of a collection for objects of a version.
type converted[T store.Object] struct {
	of      *Collection[T]
	version Version
}

func (s converted[T]) Read(key string) (obj store.Object, found bool, err error) {
	stored, found, err := s.of.storage.Read(key)
	if err != nil || !found {
		return nil, found, err
	}
	return s.version.To(stored), true, nil
}

func (s converted[T]) Write(key string, decide func(store.Object, bool) (Decision[store.Object], error)) (store.Object, error) {
	written, err := s.of.storage.Write(key, func(stored T, found bool) (d Decision[T], err error) {
		var was store.Object
		if found {
			was = s.version.To(stored)
		}
		decided, err := decide(was, found)
		switch {
		case err != nil:
			return d, err
		case decided.Op == Keep:
			return Decision[T]{Op: Keep, Object: stored}, nil
		}
		next, ok := s.version.From(decided.Object).(T)
		if !ok {
			return d, apierrors.NewInternalError(errOtherType)
		}
		s.of.Kind().SetKind(next)
		return Decision[T]{Op: decided.Op, Object: next}, nil
	})
	if err != nil {
		return nil, err
	}
	return s.version.To(written), nil
}

package clientgo

import (
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Object is an object of a type that the compiler does not know; see [NewInformer].
type Object interface {
	metav1.Object
	runtime.Object
}

// checked transforms objects, and checks their type at run time. The reflector counts an object
// that fails either as unusable, and lists again.
type checked struct {
	want      reflect.Type // nil: any
	shares    bool         // objects share memory, so a transform gets a copy
	transform atomic.Pointer[cache.TransformFunc]
	started   atomic.Bool
}

func (c *checked) list(_ metav1.ListOptions, list listwatch.List[Object]) listwatch.List[Object] {
	items := list.Items
	list.Items = func(yield func(Object, error) bool) {
		for obj, err := range items {
			if err == nil {
				obj, err = c.object("list", "", obj)
			}
			if !yield(obj, err) {
				return
			}
		}
	}
	return list
}

func (c *checked) watch(
	_ metav1.ListOptions, events iter.Seq2[listwatch.Event[Object], error],
) iter.Seq2[listwatch.Event[Object], error] {
	return func(yield func(listwatch.Event[Object], error) bool) {
		for event, err := range events {
			if err == nil && event.Type != watch.Bookmark {
				event.Object, err = c.object("watch", string(event.Type), event.Object)
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

func (c *checked) object(op, event string, obj Object) (Object, error) {
	unusable := func(err error) error {
		return &listwatch.DecodeError{Op: op, Event: event, Object: store.KeyOf(obj), Err: err}
	}
	if got := reflect.TypeOf(obj); c.want != nil && got != c.want {
		return nil, unusable(fmt.Errorf("got a %s instead of a %s", got, c.want))
	}
	transform := c.transform.Load()
	if transform == nil || *transform == nil {
		return obj, nil
	}
	shared := obj
	if c.shares {
		obj = obj.DeepCopyObject().(Object)
	}
	changed, err := (*transform)(obj)
	if err != nil {
		return nil, unusable(fmt.Errorf("the transform fails: %w", err))
	}
	object, err := typed[Object](changed)
	if err != nil {
		return nil, unusable(fmt.Errorf("the transform: %w", err))
	}
	if c.shares {
		content.Share(object, shared)
	}
	return object, nil
}

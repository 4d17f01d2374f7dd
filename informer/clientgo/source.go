package clientgo

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Object is an object of a type that the compiler does not know; see [NewInformer].
type Object interface {
	metav1.Object
	runtime.Object
}

// checked transforms objects, and checks their type at run time. The reflector counts an object
// that fails either as unusable, and lists again. If the transform makes nil of an object, the copy
// does not have it, nor has it an object of another shard.
type checked struct {
	want      reflect.Type // nil: any
	shares    bool         // objects share memory, so a transform gets a copy
	transform atomic.Pointer[cache.TransformFunc]
	shard     atomic.Pointer[shardSelector]
	started   atomic.Bool
	leavesOut atomic.Bool  // the transform or the shard has left objects out
	slims     atomic.Int32 // objects of which the transform has dropped the managed fields alone
}

// shardSelector is the part of sharding.Selector that decides.
type shardSelector interface {
	Matches(runtime.Object) (bool, error)
}

var errLeftOut = errors.New("the object is left out")

func (c *checked) list(_ metav1.ListOptions, list listwatch.List[Object]) listwatch.List[Object] {
	items := list.Items
	list.Items = func(yield func(Object, error) bool) {
		for obj, err := range items {
			if err == nil {
				obj, err = c.object("list", "", obj)
			}
			if err == errLeftOut {
				continue
			}
			if !yield(obj, err) {
				return
			}
		}
	}
	meta := list.Meta
	list.Meta = func() metav1.ListMeta {
		of := meta()
		if c.leavesOut.Load() { // the server's count is another one
			of.RemainingItemCount = nil
		}
		return of
	}
	return list
}

func (c *checked) watch(
	request metav1.ListOptions, events iter.Seq2[listwatch.Event[Object], error],
) iter.Seq2[listwatch.Event[Object], error] {
	return func(yield func(listwatch.Event[Object], error) bool) {
		initial := request.SendInitialEvents != nil && *request.SendInitialEvents
		for event, err := range events {
			if err == nil && event.Type != watch.Bookmark {
				last := event.Object
				event.Object, err = c.object("watch", string(event.Type), last)
				switch {
				case err != errLeftOut:
				case initial:
					continue
				default: // it may have been in the copy
					event.Type, event.Object, err = watch.Deleted, last, nil
				}
			}
			initial = initial && !event.InitialEventsEnd
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
	if shard := c.shard.Load(); shard != nil {
		switch matched, err := (*shard).Matches(obj); {
		case err != nil:
			return nil, unusable(fmt.Errorf("the shard selector fails: %w", err))
		case !matched:
			c.leavesOut.Store(true)
			return nil, errLeftOut
		}
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
	if null.Is(changed) {
		c.leavesOut.Store(true)
		return nil, errLeftOut
	}
	object, err := typed[Object](changed)
	if err != nil {
		return nil, unusable(fmt.Errorf("the transform: %w", err))
	}
	if c.shares {
		content.Share(object, shared)
		c.advise(object, shared)
	}
	return object, nil
}

const (
	// slimsEnough is after how many objects a transform is said to drop the managed fields alone.
	slimsEnough = 20
	slimsNot    = -1
)

// advise logs, once, that a transform drops the managed fields and nothing else, as far as can be
// seen: most programs have one, and the decoder does that without a copy. It is advice alone, since
// the next object may be the one that the transform was written for.
func (c *checked) advise(object, from Object) {
	switch seen := c.slims.Load(); {
	case seen == slimsNot || len(from.GetManagedFields()) == 0:
	case !isSlim(object, from):
		c.slims.Store(slimsNot)
	case seen+1 < slimsEnough:
		c.slims.Add(1)
	default:
		c.slims.Store(slimsNot)
		klog.Background().Info("The transform seems to drop the managed fields alone: the option listwatch.DropManagedFields does so without a copy of each object",
			"type", fmt.Sprintf("%T", object))
	}
}

// isSlim reports whether an object is another one without its managed fields. They share memory.
func isSlim(object, from Object) bool {
	of := reflect.ValueOf(from)
	if _, tree := from.(runtime.Unstructured); tree || of.Kind() != reflect.Pointer {
		return false
	}
	slim := reflect.New(of.Type().Elem())
	slim.Elem().Set(of.Elem())
	slim.Interface().(Object).SetManagedFields(nil)
	return content.Equal(slim.Interface(), object)
}

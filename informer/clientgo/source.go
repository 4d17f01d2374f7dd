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

	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/watchlist"
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
	leavesOut atomic.Bool // the transform or the shard has left objects out
	source    any         // which the transform is told of, if it shares
	effect    effect      // of the transform
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
		initial := watchlist.Asked(request)
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
		c.look(object, shared)
	}
	return object, nil
}

// lookedAt is how many objects with managed fields show what a transform does.
const lookedAt = 20

// effect is what a transform does to the first objects.
type effect struct {
	looked     atomic.Int32
	more       atomic.Bool  // it does more than to drop the managed fields
	came, kept atomic.Int64 // bytes
}

// look takes in an object that was transformed. If little is left of the first ones, what all of
// them have in common is not remembered: it would take more memory than they do. If only the
// managed fields were dropped, the log says, once, that the decoder does that without a copy. It is
// advice alone, since the next object may be the one that the transform was written for.
func (c *checked) look(object, from Object) {
	e := &c.effect
	if e.looked.Load() >= lookedAt || len(from.GetManagedFields()) == 0 {
		return
	}
	if !isSlim(object, from) {
		e.more.Store(true)
	}
	came, kept := e.came.Add(sizeOf(from)), e.kept.Add(sizeOf(object))
	switch {
	case e.looked.Add(1) != lookedAt:
	case 4*kept < came:
		adapters.Pass(c.source)
	case !e.more.Load():
		klog.Background().Info("The transform seems to drop the managed fields alone: the option listwatch.DropManagedFields does so without a copy of each object",
			"type", fmt.Sprintf("%T", object))
	}
}

// sizeOf is the size of an object in protobuf, and zero if it has no such form.
func sizeOf(object Object) int64 {
	if sized, ok := object.(interface{ Size() int }); ok {
		return int64(sized.Size())
	}
	return 0
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

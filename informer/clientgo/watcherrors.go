package clientgo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// WithWatchErrors returns source for a reader that calls handle for each error by which a list or a
// watch of source ends, as client-go's informers do. example is the type that the handler's
// reflector names in the log; it may be nil.
//
// handle is called on the goroutine of the list or watch, with its context, and must not block. Its
// reflector is a real one and idle: it has a name and a type, and follows nothing. A server's
// refusal of a watch list is no error, since a list follows. WithWatchErrors panics if the source or
// the handler is nil.
func WithWatchErrors[T store.Object](
	source listwatch.ListerWatcher[T], example any, handle cache.WatchErrorHandlerWithContext,
) listwatch.ListerWatcher[T] {
	switch {
	case null.Is(source):
		panic("clientgo: WithWatchErrors: the source is nil")
	case handle == nil:
		panic("clientgo: WithWatchErrors: the handler is nil")
	}
	e := &watchErrors[T]{source: source, example: example}
	e.handle.Store(&handle)
	return e
}

type watchErrors[T store.Object] struct {
	source  listwatch.ListerWatcher[T]
	example any
	handle  atomic.Pointer[cache.WatchErrorHandlerWithContext]
	idle    atomic.Pointer[cache.Reflector]
}

func (e *watchErrors[T]) List(ctx context.Context, request metav1.ListOptions) listwatch.List[T] {
	return e.list(ctx, e.source, request)
}

func (e *watchErrors[T]) Watch(ctx context.Context, request metav1.ListOptions) iter.Seq2[listwatch.Event[T], error] {
	return e.watch(ctx, e.source, request)
}

func (e *watchErrors[T]) IsWatchListSemanticsUnSupported() bool {
	return !listwatch.SupportsWatchList(e.source)
}

// Holding implements [listwatch.Holder], for sources that do.
func (e *watchErrors[T]) Holding(held func(key string) (T, bool)) listwatch.ListerWatcher[T] {
	holder, ok := e.source.(listwatch.Holder[T])
	if !ok {
		return e
	}
	return &heldWatchErrors[T]{watchErrors: e, source: holder.Holding(held)}
}

// heldWatchErrors reads the source of one reader, and tells the handler of all.
type heldWatchErrors[T store.Object] struct {
	*watchErrors[T]
	source listwatch.ListerWatcher[T]
}

func (e *heldWatchErrors[T]) List(ctx context.Context, request metav1.ListOptions) listwatch.List[T] {
	return e.list(ctx, e.source, request)
}

func (e *heldWatchErrors[T]) Watch(ctx context.Context, request metav1.ListOptions) iter.Seq2[listwatch.Event[T], error] {
	return e.watch(ctx, e.source, request)
}

func (e *watchErrors[T]) list(ctx context.Context, source listwatch.ListerWatcher[T], request metav1.ListOptions) listwatch.List[T] {
	list := source.List(ctx, request)
	items := list.Items
	list.Items = func(yield func(T, error) bool) {
		for obj, err := range items {
			e.tell(ctx, request, err)
			if !yield(obj, err) {
				return
			}
		}
	}
	return list
}

func (e *watchErrors[T]) watch(
	ctx context.Context, source listwatch.ListerWatcher[T], request metav1.ListOptions,
) iter.Seq2[listwatch.Event[T], error] {
	return func(yield func(listwatch.Event[T], error) bool) {
		for event, err := range source.Watch(ctx, request) {
			e.tell(ctx, request, err)
			if !yield(event, err) {
				return
			}
		}
	}
}

// tell calls the handler, except for an object that cannot be decoded, which ends nothing, and for
// the end of ctx.
func (e *watchErrors[T]) tell(ctx context.Context, request metav1.ListOptions, err error) {
	handle := e.handle.Load()
	var unusable *listwatch.DecodeError
	if err == nil || handle == nil || *handle == nil || ctx.Err() != nil || errors.As(err, &unusable) ||
		request.SendInitialEvents != nil && refused(err) {
		return
	}
	(*handle)(ctx, e.reflector(), err)
}

// refused reports whether the server does not answer watch lists, or not these.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusGone
}

// reflector makes the idle reflector at the first error.
func (e *watchErrors[T]) reflector() *cache.Reflector {
	if r := e.idle.Load(); r != nil {
		return r
	}
	name := fmt.Sprintf("tributary: %v", reflect.TypeOf(e.example))
	r := cache.NewReflectorWithOptions(&cache.ListWatch{}, e.example, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{Name: name})
	if e.idle.CompareAndSwap(nil, r) {
		return r
	}
	return e.idle.Load()
}

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// WithWatchErrors returns source for a reader that calls handle for each error by which a list or a
// watch of source ends, as client-go's informers do. example is the type that the handler's
// reflector names in the log; it may be nil.
//
// handle is called on the goroutine of the list or watch, and must not block. Its context is the
// background. Its reflector is a real one and idle: it has a name and a type, and follows nothing.
// The failure of a watch list is not told if a list follows at once. WithWatchErrors panics if the
// source or the handler is nil.
func WithWatchErrors[T store.Object](
	source listwatch.ListerWatcher[T], example any, handle cache.WatchErrorHandlerWithContext,
) *listwatch.ListWatch[T] {
	if handle == nil {
		panic("clientgo: WithWatchErrors: the handler is nil")
	}
	e := newWatchErrors(example)
	e.handle.Store(&handle)
	return watched(source, e)
}

func watched[T store.Object](source listwatch.ListerWatcher[T], e *watchErrors) *listwatch.ListWatch[T] {
	return listwatch.Intercept(source,
		func(request metav1.ListOptions, list listwatch.List[T]) listwatch.List[T] {
			list.Items = told(e, request, list.Items)
			return list
		},
		func(request metav1.ListOptions, events iter.Seq2[listwatch.Event[T], error]) iter.Seq2[listwatch.Event[T], error] {
			return told(e, request, events)
		})
}

// told passes a sequence on, and tells its errors.
func told[V any](e *watchErrors, request metav1.ListOptions, seq iter.Seq2[V, error]) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for value, err := range seq {
			e.tell(request, err)
			if !yield(value, err) {
				return
			}
		}
	}
}

// watchErrors is a handler, which may be set later, and its reflector.
type watchErrors struct {
	handle    atomic.Pointer[cache.WatchErrorHandlerWithContext]
	reflector func() *cache.Reflector // makes it at the first error
}

func newWatchErrors(example any) *watchErrors {
	return &watchErrors{reflector: sync.OnceValue(func() *cache.Reflector {
		return cache.NewReflectorWithOptions(&cache.ListWatch{}, example, cache.NewStore(cache.MetaNamespaceKeyFunc),
			cache.ReflectorOptions{Name: fmt.Sprintf("tributary: %v", reflect.TypeOf(example))})
	})}
}

// tell calls the handler, except for an object that cannot be decoded, which ends nothing, and for
// the end of the request's context.
func (e *watchErrors) tell(request metav1.ListOptions, err error) {
	handle := e.handle.Load()
	var unusable *listwatch.DecodeError
	if err == nil || handle == nil || *handle == nil || errors.Is(err, context.Canceled) || errors.As(err, &unusable) ||
		request.SendInitialEvents != nil && !isFinal(err) {
		return
	}
	(*handle)(context.Background(), e.reflector(), err)
}

// isFinal reports whether the error of a watch list is that of the attempt: otherwise a list
// follows at once, and its error is told.
func isFinal(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		utilnet.IsConnectionRefused(err)
}

package clientgo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
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

// WithWatchErrors returns source for a reader that calls handle for failed lists and for watches
// that cannot begin. example is the type that the handler's reflector names in the log; it may be
// nil.
//
// As in client-go, handle is not called for errors that the reader retries by itself: an expired
// version, a watch that is refused by 429 or by a closed port, a watch list, and the end of a
// running watch. Unlike there, it is not called for a watch that is refused by an internal error
// (500) either.
//
// handle is called on the goroutine of the list or watch, and must not block. Its context is the
// background; the handler of [NewInformer] gets that of RunWithContext. Its reflector is a real one
// and idle: it has a name and a type, and follows nothing. WithWatchErrors panics if the source or
// the handler is nil.
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
			list.Items = told(e, list.Items, func(err error, _ bool) bool { return !isExpired(err) })
			return list
		},
		func(request metav1.ListOptions, events iter.Seq2[listwatch.Event[T], error]) iter.Seq2[listwatch.Event[T], error] {
			if request.SendInitialEvents != nil {
				return events // if it fails for good, a list follows
			}
			return told(e, events, func(err error, begun bool) bool { return !begun && isRefusal(err) })
		})
}

// told passes a sequence on, and tells the errors that count. begun says that something came
// before.
func told[V any](e *watchErrors, seq iter.Seq2[V, error], counts func(err error, begun bool) bool) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		begun := false
		for value, err := range seq {
			if err == nil {
				begun = true
			} else if counts(err, begun) {
				e.tell(err)
			}
			if !yield(value, err) {
				return
			}
		}
	}
}

// watchErrors is a handler, which may be set later, and its reflector.
type watchErrors struct {
	handle    atomic.Pointer[cache.WatchErrorHandlerWithContext]
	reflector func() *cache.Reflector         // makes it at the first error
	ctx       atomic.Pointer[context.Context] // of RunWithContext, for the handler alone
}

func newWatchErrors(example any) *watchErrors {
	return &watchErrors{reflector: sync.OnceValue(func() *cache.Reflector {
		return cache.NewReflectorWithOptions(&cache.ListWatch{}, example, cache.NewStore(cache.MetaNamespaceKeyFunc),
			cache.ReflectorOptions{Name: fmt.Sprintf("tributary: %v", reflect.TypeOf(example))})
	})}
}

// tell calls the handler, except for an object that cannot be decoded, which ends nothing, and for
// the end of the request's context.
func (e *watchErrors) tell(err error) {
	handle := e.handle.Load()
	var unusable *listwatch.DecodeError
	if handle == nil || *handle == nil || errors.Is(err, context.Canceled) || errors.As(err, &unusable) {
		return
	}
	ctx := context.Background()
	if run := e.ctx.Load(); run != nil {
		ctx = *run
	}
	(*handle)(ctx, e.reflector(), err)
}

// isRefusal reports whether a watch with this error has not begun, and client-go's reflector would
// give up and list again.
func isRefusal(err error) bool {
	// client-go's decoder also makes an internal error of a broken stream.
	if isExpired(err) || apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || utilnet.IsConnectionRefused(err) {
		return false
	}
	var status apierrors.APIStatus
	var request *url.Error
	return errors.As(err, &status) || errors.As(err, &request)
}

// isExpired reports whether another version must be asked for, which readers do at once.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

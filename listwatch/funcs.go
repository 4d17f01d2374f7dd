package listwatch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/store"
)

// FromFuncs reads a collection through two functions, such as the methods of a typed or dynamic
// client:
//
//	pods := clientset.CoreV1().Pods("default")
//	lw := listwatch.FromFuncs[*corev1.Pod](pods.List, pods.Watch)
//
// The list function holds its list whole, and a watch costs the goroutine and the channel of the
// client behind it. [FromClient] has neither cost.
//
// The functions of client-go's fake clientsets accept the request for a watch list and send
// nothing. So a watch list fails if its initial state is not complete after half a second, and a
// reflector then lists. The watches of client-go's real clients (*watch.StreamWatcher) have no such
// limit, since a server may be slow. [WithoutWatchList] saves a test the half second.
//
// FromFuncs panics if a function is nil.
func FromFuncs[T store.Object, L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error),
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error),
	optionList ...FuncsOption,
) *ListWatch[T] {
	switch {
	case list == nil:
		panic("listwatch: FromFuncs: the function that lists is nil")
	case watch == nil:
		panic("listwatch: FromFuncs: the function that watches is nil")
	}
	f := funcSource[T]{
		options: apply("FromFuncs", optionList),
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return list(ctx, options)
		},
		watch: watch,
	}
	return f.listWatch()
}

type funcSource[T store.Object] struct {
	options options
	list    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func (f funcSource[T]) listWatch() *ListWatch[T] {
	lw := &ListWatch[T]{list: f.listAll, watch: f.watchFrom, noWatchList: f.options.noWatchList, nameless: f.options.asClientGo, private: true}
	return detected(lw, f.options)
}

func (f funcSource[T]) listAll(ctx context.Context, request metav1.ListOptions) List[T] {
	var listMeta metav1.ListMeta
	items := func(yield func(T, error) bool) {
		var none T
		yield = shardItems(ctx, f.options.shard, yield)
		list, err := f.list(ctx, f.options.narrow(request))
		if err != nil {
			yield(none, fmt.Errorf("list: %w", explain(err)))
			return
		}
		// Each object moves into memory of its own: a pointer into the list would keep the whole
		// list alive.
		err = meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
			obj, ok := item.(T)
			if !ok {
				err := &DecodeError{Op: "list", Object: keyOfAny(item), Err: wrongType[T](item)}
				return stopUnless(yield(none, err))
			}
			if err := named(obj, f.options.asClientGo); err != nil {
				return stopUnless(yield(none, &DecodeError{Op: "list", Object: keyOfAny(item), Err: err}))
			}
			return stopUnless(yield(obj, nil))
		})
		if err == nil {
			listMeta, err = metaOf(list)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(none, fmt.Errorf("list: %w", err))
		}
	}
	return List[T]{Items: items, Meta: func() metav1.ListMeta { return shardMeta(f.options.shard, listMeta) }}
}

func metaOf(list runtime.Object) (metav1.ListMeta, error) {
	m, err := meta.ListAccessor(list)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	if accessor, ok := list.(metav1.ListMetaAccessor); ok {
		if typed, ok := accessor.GetListMeta().(*metav1.ListMeta); ok {
			return *typed, nil // with the fields that newer releases have added
		}
	}
	return metav1.ListMeta{
		ResourceVersion: m.GetResourceVersion(), Continue: m.GetContinue(), RemainingItemCount: m.GetRemainingItemCount(),
	}, nil
}

func stopUnless(goOn bool) error {
	if goOn {
		return nil
	}
	return errStopped
}

func (f funcSource[T]) watchFrom(ctx context.Context, request metav1.ListOptions) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		yield = shardEvents(ctx, f.options.shard, yield)
		w, err := f.watch(ctx, f.options.narrow(request))
		if err != nil {
			yield(Event[T]{}, fmt.Errorf("watch: %w", explain(err)))
			return
		}
		defer w.Stop()
		late := initialLimit(request, w)
		for {
			select {
			case <-late:
				yield(Event[T]{}, fmt.Errorf("watch: %w", errNoWatchList))
				return
			case <-ctx.Done():
				yield(Event[T]{}, fmt.Errorf("watch: %w", ctx.Err()))
				return
			case came, open := <-w.ResultChan():
				if !open && ctx.Err() != nil { // clients close the channel when the context ends
					yield(Event[T]{}, fmt.Errorf("watch: %w", ctx.Err()))
				}
				if !open {
					return
				}
				event, err := typedEvent[T](came, f.options.asClientGo)
				if event.InitialEventsEnd {
					late = nil
				}
				if !yield(event, err) || came.Type == watch.Error {
					return
				}
			}
		}
	}
}

// maxInitial is the limit for the initial state of a watch that has it in memory, such as a fake's.
const maxInitial = 500 * time.Millisecond

// errNoWatchList is the error of a server that does not know the request: a reflector then lists at
// once.
var errNoWatchList error = apierrors.NewBadRequest("the functions do not answer a watch list: " +
	"its initial state was not complete after " + maxInitial.String() + "; say WithoutWatchList")

// initialLimit fires when a watch list is late. It is nil for other watches, and for those that may
// wait for a server.
func initialLimit(request metav1.ListOptions, w watch.Interface) <-chan time.Time {
	if !watchlist.Asked(request) {
		return nil
	}
	switch w.(type) {
	case *watch.StreamWatcher, *clientGoWatch:
		return nil
	}
	return time.After(maxInitial)
}

func typedEvent[T store.Object](came watch.Event, nameless bool) (Event[T], error) {
	switch came.Type {
	case watch.Error:
		status, ok := came.Object.(*metav1.Status)
		if !ok { // apierrors would print the object
			return Event[T]{}, fmt.Errorf("watch: %w", errUndecodableStatus)
		}
		return Event[T]{}, fmt.Errorf("watch: %w", statusError(status))
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
	default:
		return Event[T]{}, &DecodeError{Op: "watch", Event: "unknown", Object: keyOfAny(came.Object), Err: errUnknownEvent}
	}
	obj, ok := came.Object.(T)
	if !ok {
		return Event[T]{}, &DecodeError{Op: "watch", Event: string(came.Type), Object: keyOfAny(came.Object),
			Err: wrongType[T](came.Object)}
	}
	if err := named(obj, nameless); err != nil && came.Type != watch.Bookmark {
		return Event[T]{}, &DecodeError{Op: "watch", Event: string(came.Type), Object: keyOfAny(came.Object), Err: err}
	}
	return newEvent(came.Type, obj, 0), nil
}

func wrongType[T store.Object](got runtime.Object) error {
	var want T
	return wrongKind(fmt.Sprintf("%T", got), fmt.Sprintf("%T", want))
}

func keyOfAny(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return store.Key(m.GetNamespace(), m.GetName())
}

package listwatch

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/store"
)

// The untyped file: client-go's ListerWatcher speaks runtime.Object.

// FromClientGo reads a collection through client-go's ListerWatcher, such as a *cache.ListWatch. If
// lw says that it does not support watch lists, a reflector lists instead. FromClientGo panics if
// lw is nil.
func FromClientGo[T store.Object](lw cache.ListerWatcher, optionList ...FuncsOption) *ListWatch[T] {
	if null.Is(lw) {
		panic(fmt.Sprintf("listwatch: FromClientGo: the ListerWatcher is nil (%T)", lw))
	}
	withContext := cache.ToListerWatcherWithContext(lw)
	f := funcSource[T]{options: apply("FromClientGo", optionList), list: withContext.ListWithContext, watch: withContext.WatchWithContext}
	f.options.noWatchList = f.options.noWatchList || !watchlist.Supported(lw)
	read := f.listWatch()
	if adapter, ok := lw.(interface{ sharesMemory() bool }); ok && adapter.sharesMemory() {
		read.private = false
	}
	return read
}

// ToClientGo lets client-go's reflectors and informers read from a [ListerWatcher]. Lists are
// collected whole, and each watch has a goroutine and a channel, as that interface demands. Each
// object is a copy, since client-go lets a transform write into it; with [ReadOnly], objects share
// memory.
//
// An object that cannot be decoded ends a list with its error, and comes through a watch as an
// ERROR event. An object without a name is logged and left out. ToClientGo panics if lw is nil.
func ToClientGo[T store.Object](lw ListerWatcher[T], optionList ...ReaderOption) cache.ListerWatcher {
	if null.Is(lw) {
		panic(fmt.Sprintf("listwatch: ToClientGo: the ListerWatcher is nil (%T)", lw))
	}
	readOnly := isReadOnly("ToClientGo", optionList)
	return &clientGoAdapter[T]{
		lw: lw, copier: copierFor(lw, readOnly), private: !readOnly, noWatchList: !watchlist.Supported(lw),
	}
}

type clientGoAdapter[T store.Object] struct {
	lw          ListerWatcher[T]
	copier      copier[T]
	private     bool // readers may write into objects
	noWatchList bool
}

func (a *clientGoAdapter[T]) IsWatchListSemanticsUnSupported() bool { return a.noWatchList }

func (a *clientGoAdapter[T]) sharesMemory() bool { return !a.private }

func (a *clientGoAdapter[T]) List(options metav1.ListOptions) (runtime.Object, error) {
	return a.ListWithContext(context.Background(), options)
}

func (a *clientGoAdapter[T]) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return a.WatchWithContext(context.Background(), options)
}

func (a *clientGoAdapter[T]) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := a.lw.List(ctx, options)
	all := &objectList[T]{}
	for obj, err := range list.Items {
		if leftOut(ctx, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all.Items = append(all.Items, a.copier.copied(obj))
	}
	all.ListMeta = list.Meta()
	return all, nil
}

func (a *clientGoAdapter[T]) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &clientGoWatch{events: make(chan watch.Event), stop: cancel}
	go func() {
		defer close(w.events)
		defer cancel()
		for event, err := range a.lw.Watch(ctx, options) {
			if leftOut(ctx, err) {
				continue
			}
			if err == nil && event.Type != watch.Bookmark {
				event.Object = a.copier.copied(event.Object)
			}
			select {
			case w.events <- untyped(event, err):
			case <-ctx.Done():
				return
			}
		}
	}()
	return w, nil
}

// leftOut reports whether an object is left out since it has no name. Client-go would keep it
// under an empty key, which no lookup can name.
func leftOut(ctx context.Context, err error) bool {
	if !errors.Is(err, errNoName) {
		return false
	}
	klog.FromContext(ctx).Error(err, "An object is left out: the server must give it a name")
	return true
}

// clientGoWatch is a running watch. Its goroutine ends with Stop, with the context, or with the
// stream.
type clientGoWatch struct {
	events chan watch.Event
	stop   context.CancelFunc
}

func (w *clientGoWatch) Stop()                          { w.stop() }
func (w *clientGoWatch) ResultChan() <-chan watch.Event { return w.events }

func untyped[T store.Object](event Event[T], err error) watch.Event {
	if err != nil {
		return watch.Event{Type: watch.Error, Object: statusOf(err)}
	}
	if event.Type != watch.Bookmark {
		return watch.Event{Type: event.Type, Object: event.Object}
	}
	bookmark := standInFor[T]()
	if u, ok := any(bookmark).(*unstructured.Unstructured); ok {
		u.Object = map[string]any{}
	}
	if !event.kind.Empty() { // client-go drops bookmarks of another kind
		bookmark.GetObjectKind().SetGroupVersionKind(event.kind)
	}
	bookmark.SetResourceVersion(event.ResourceVersion)
	if event.InitialEventsEnd {
		bookmark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return watch.Event{Type: watch.Bookmark, Object: bookmark}
}

func statusOf(err error) *metav1.Status {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		status := api.Status()
		return &status
	}
	status := apierrors.NewInternalError(err).Status()
	return &status
}

// objectList is a list of pointers, which client-go's helpers accept as any list type.
type objectList[T store.Object] struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []T
}

// DeepCopyObject implements runtime.Object.
func (l *objectList[T]) DeepCopyObject() runtime.Object {
	out := &objectList[T]{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for _, item := range l.Items {
		out.Items = append(out.Items, item.DeepCopyObject().(T))
	}
	return out
}

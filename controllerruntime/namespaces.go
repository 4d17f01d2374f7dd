package controllerruntime

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/listwatch"
)

// OneWatch reads the namespaces of a kind by one list and one watch of all namespaces, and drops
// the objects of other namespaces as they come. Default: a list and a watch for each namespace.
//
// It is for programs that select most of a cluster's namespaces, and may list and watch all of
// them. Each watch that it saves takes some 50 KB and two goroutines here, and more in the server.
// But the objects of all namespaces are sent, and decoded. Without the right, reads fail with 403
// as ever.
//
// A kind whose namespaces have different selectors or transforms keeps a watch for each.
func OneWatch() Option { return func(e *extras) { e.oneWatch = true } }

// sole returns the namespace and the configuration of a kind's only source; ok is false if each
// namespace has its own.
func (s settings) sole(configs map[string]cache.Config) (namespace string, config cache.Config, ok bool) {
	var read string
	for name, each := range configs {
		this := requestOf(each)
		if read != "" && this != read {
			return "", config, false
		}
		read, config, namespace = this, each, name
	}
	if len(configs) == 1 {
		return namespace, config, true
	}
	_, others := configs[metav1.NamespaceAll]
	return metav1.NamespaceAll, config, s.oneWatch && !others
}

// requestOf is equal for configurations with equal objects.
func requestOf(c cache.Config) string {
	text := "read"
	if c.LabelSelector != nil {
		text += fmt.Sprintf(" labels %q", c.LabelSelector)
	}
	if c.FieldSelector != nil {
		text += fmt.Sprintf(" fields %q", c.FieldSelector)
	}
	if c.Transform != nil {
		// The address of the closure: that of its code is equal for all closures of one place.
		text += fmt.Sprintf(" transform %x", *(*uintptr)(unsafe.Pointer(&c.Transform)))
	}
	if c.EnableWatchBookmarks != nil {
		text += fmt.Sprintf(" bookmarks %t", *c.EnableWatchBookmarks)
	}
	return text
}

// isOneOfMany reports whether several namespaces have one source.
func (c *collection) isOneOfMany() bool {
	_, one := c.copy.(*informer.Informer[object])
	return one && len(c.configs) > 1
}

// within drops the objects that are in no namespace of a kind with several. A change of such an
// object is a bookmark: the collection has all that comes before it.
func (s shape) within(source listwatch.ListerWatcher[object]) listwatch.ListerWatcher[object] {
	if len(s.configs) == 1 {
		return source
	}
	return listwatch.Intercept(source, func(_ metav1.ListOptions, list listwatch.List[object]) listwatch.List[object] {
		items, described := list.Items, list.Meta
		list.Items = func(yield func(object, error) bool) {
			for obj, err := range items {
				if s.keeps(obj, err) && !yield(obj, err) {
					return
				}
			}
		}
		list.Meta = func() metav1.ListMeta {
			m := described()
			m.RemainingItemCount = nil // it counts the objects of all namespaces
			return m
		}
		return list
	}, func(request metav1.ListOptions, events iter.Seq2[listwatch.Event[object], error]) iter.Seq2[listwatch.Event[object], error] {
		return func(yield func(listwatch.Event[object], error) bool) {
			// Initial events come in no order of versions.
			initial := watchlist.Asked(request)
			for event, err := range events {
				initial = initial && !event.InitialEventsEnd
				if event.Type != watch.Bookmark && !s.keeps(event.Object, err) {
					if initial || err != nil {
						continue
					}
					event = listwatch.Event[object]{Type: watch.Bookmark, ResourceVersion: event.ResourceVersion}
				}
				if !yield(event, err) {
					return
				}
			}
		}
	})
}

// keeps reports whether an object is in a namespace of the kind, or an error may concern one.
func (s shape) keeps(obj object, err error) bool {
	var one *listwatch.DecodeError
	var namespace string
	switch {
	case err == nil:
		namespace = obj.GetNamespace()
	case errors.As(err, &one) && one.Object != "":
		namespace, _, _ = strings.Cut(one.Object, "/")
	default:
		return true
	}
	_, ok := s.configs[namespace]
	return ok
}

// Package enqueue joins handlers and workqueues, in which a controller keeps the keys of objects to
// reconcile. [Owner] and [Label] map objects to the keys of others, for [Keys] and for package
// controller.
package enqueue

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// Keys is a handler for [informer.Informer.AddHandler] that adds keys to a queue. It adds the
// keys of the object before and after the change, each once. So the former owners of a moved or
// deleted object are reconciled too.
//
// It remembers the keys of each object that has some: a deletion may come with a newer state than
// the one told last, and has other keys then. Both add theirs. Informers with the same object need
// a handler each.
//
// keys may return the owners of the object, or its own key by [store.KeyOf]; no keys add nothing.
// keys is called on the handler's goroutine. A queue that has been shut down ignores keys. Keys
// panics if the queue or the function is nil.
func Keys[T store.Object, K comparable](queue workqueue.TypedInterface[K], keys func(obj T) []K) func(informer.Event[T]) {
	switch {
	case null.Is(queue):
		panic("enqueue: Keys: the queue is nil")
	case keys == nil:
		panic("enqueue: Keys: the function that returns the keys is nil")
	}
	var mu sync.Mutex
	known := map[string][]K{}
	return func(e informer.Event[T]) {
		var before, after []K
		if !pointer.None(e.Old) {
			before = keys(e.Old)
		}
		if !pointer.None(e.New) {
			after = keys(e.New)
		}
		mu.Lock()
		last := known[e.Key]
		if delete(known, e.Key); len(after) > 0 {
			known[e.Key] = after
		}
		mu.Unlock()
		var added []K
		for _, key := range slices.Concat(last, before, after) {
			if !slices.Contains(added, key) {
				added = append(added, key)
				queue.Add(key)
			}
		}
	}
}

// Owner returns a function that maps an object to its controller, by its owner reference, if that
// is of the given kind, in whatever version:
//
//	enqueue.Owner[*corev1.Pod](appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
//
// The key is the owner's name in the object's namespace, so an owner in cluster scope is found from
// objects in cluster scope alone.
func Owner[T store.Object, K schema.GroupVersionKind | schema.GroupKind](kind K) func(obj T) []string {
	wanted, ok := any(kind).(schema.GroupKind)
	if !ok {
		wanted = any(kind).(schema.GroupVersionKind).GroupKind()
	}
	return func(obj T) []string {
		ref := metav1.GetControllerOfNoCopy(obj)
		if ref == nil || schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() != wanted {
			return nil
		}
		return []string{store.Key(obj.GetNamespace(), ref.Name)}
	}
}

// Label returns a function that maps an object to the one that a label of it names, in the same
// namespace.
func Label[T store.Object](label string) func(obj T) []string {
	return func(obj T) []string {
		name := obj.GetLabels()[label]
		if name == "" {
			return nil
		}
		return []string{store.Key(obj.GetNamespace(), name)}
	}
}

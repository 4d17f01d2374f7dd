package listwatch

import (
	"iter"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/content"
	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// Mutation is a write into an object that was read, found by [WithMutationDetector]. It contains no
// value from the object.
type Mutation struct {
	Object          string // "namespace/name"
	ResourceVersion string // the version that was read
	// Path is the first field that differs, by its names in JSON: metadata.labels[app],
	// spec.containers[0].image. Memory is shared: the writer may have had another object with the
	// same part.
	Path string
}

// detected adds the detector that the options ask for.
func detected[T store.Object](lw *ListWatch[T], o options) *ListWatch[T] {
	if o.mutated == nil {
		return lw
	}
	d := &detector[T]{report: o.mutated.tell, read: map[string]readObject[T]{}}
	return Intercept(lw, d.list, d.watch)
}

// detector keeps a copy of the last state of each object, as many as a store has.
type detector[T store.Object] struct {
	report func(Mutation)

	mu   sync.Mutex
	read map[string]readObject[T]
}

type readObject[T store.Object] struct{ object, copied T }

// checkedPerObject is the number of other objects to compare whenever an object comes.
const checkedPerObject = 2

func (d *detector[T]) list(_ metav1.ListOptions, list List[T]) List[T] {
	items := list.Items
	list.Items = func(yield func(T, error) bool) {
		defer d.checkAll()
		for obj, err := range items {
			if err == nil {
				d.remember(obj)
			}
			if !yield(obj, err) {
				return
			}
		}
	}
	return list
}

func (d *detector[T]) watch(_ metav1.ListOptions, events iter.Seq2[Event[T], error]) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		defer d.checkAll()
		for event, err := range events {
			if err == nil && event.Type != watch.Bookmark {
				d.remember(event.Object)
			}
			if event.Type == watch.Deleted {
				d.forget(event.Object)
			}
			if !yield(event, err) {
				return
			}
		}
	}
}

// remember copies an object before any reader has it, after a last check of the state that it
// replaces.
func (d *detector[T]) remember(obj T) {
	key := store.KeyOf(obj)
	if key == "" {
		return // a stand-in of Project
	}
	var found []Mutation
	d.mu.Lock()
	old, known := d.read[key]
	if known {
		found = d.checkLocked(found, key, old)
	}
	if !known || !pointer.Same(old.object, obj) {
		d.read[key] = readObject[T]{obj, obj.DeepCopyObject().(T)}
	}
	checked := 0
	for key, r := range d.read { // in a random order
		if found = d.checkLocked(found, key, r); checked == checkedPerObject {
			break
		}
		checked++
	}
	d.mu.Unlock()
	d.tell(found)
}

func (d *detector[T]) forget(obj T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.read, store.KeyOf(obj))
}

func (d *detector[T]) checkAll() {
	var found []Mutation
	d.mu.Lock()
	for key, r := range d.read {
		found = d.checkLocked(found, key, r)
	}
	d.mu.Unlock()
	d.tell(found)
}

// checkLocked compares one object with its copy. The changed object becomes the copy, so that a
// write is found once.
func (d *detector[T]) checkLocked(found []Mutation, key string, r readObject[T]) []Mutation {
	if content.Equal(r.copied, r.object) {
		return found
	}
	path := content.Difference(r.copied, r.object)
	d.read[key] = readObject[T]{r.object, r.object.DeepCopyObject().(T)}
	return append(found, Mutation{Object: key, ResourceVersion: r.copied.GetResourceVersion(), Path: path})
}

// tell calls report outside the lock.
func (d *detector[T]) tell(found []Mutation) {
	for _, m := range found {
		d.report(m)
	}
}

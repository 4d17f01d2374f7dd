// Package following yields the changes of a collection, from the difference of its snapshots.
package following

import (
	"iter"
	"maps"

	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/store"
)

// Changes yields the changes since its last call.
type Changes = func() iter.Seq[metrics.Change]

// Resource is the plural and group of what a source reads; empty if it does not know.
func Resource(source any) string {
	named, ok := source.(interface {
		Collection() (resource, namespace string)
	})
	if !ok {
		return ""
	}
	resource, _ := named.Collection()
	return resource
}

// Snapshots implements [metrics.Follower] for one copy of a resource. A call costs as much as a
// [store.Diff].
func Snapshots[T store.Object](name string, resource func() string, now func() store.Snapshot[T]) Changes {
	before := now()
	return func() iter.Seq[metrics.Change] {
		from, to := before, now()
		before = to
		return func(yield func(metrics.Change) bool) {
			for c := range store.Diff(from, to) {
				change := metrics.Change{Copy: name, Resource: resource(), Key: c.Key}
				if !c.Added() {
					change.Old = c.Old
				}
				if !c.Deleted() {
					change.New = c.New
				}
				if !yield(change) {
					return
				}
			}
		}
	}
}

// Many joins the changes of copies that come and go. now has a function for each present copy,
// which begins to follow it.
func Many[K comparable](now func() map[K]func() Changes) Changes {
	begun := map[K]Changes{}
	look := func() {
		present := now()
		maps.DeleteFunc(begun, func(key K, _ Changes) bool { return present[key] == nil })
		for key, begin := range present {
			if begun[key] == nil {
				begun[key] = begin()
			}
		}
	}
	look()
	return func() iter.Seq[metrics.Change] {
		look()
		return func(yield func(metrics.Change) bool) {
			for _, changes := range begun {
				for c := range changes() {
					if !yield(c) {
						return
					}
				}
			}
		}
	}
}

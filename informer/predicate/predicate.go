package predicate

import (
	"maps"
	"slices"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/store"
)

// Filter tells handle of the objects that match, as if the collection had no others. An object that
// begins to match is Added. One that no longer does is Deleted, with the last state that matched as
// Old.
//
// The result is for one handler. It remembers the keys of the objects that match: the final state
// of a deleted object need not match any more.
func Filter[T store.Object](matches func(obj T) bool, handle func(informer.Event[T])) func(informer.Event[T]) {
	known := map[string]struct{}{}
	return func(e informer.Event[T]) {
		_, was := known[e.Key]
		is := e.Type != informer.Deleted && matches(e.New)
		var none T
		switch {
		case is && !was:
			known[e.Key] = struct{}{}
			e.Type, e.Old = informer.Added, none
		case was && !is:
			delete(known, e.Key)
			e.Type, e.New = informer.Deleted, none
		case !was:
			return
		}
		handle(e)
	}
}

// Updates leaves out an Updated event unless one of the functions reports a change between its two
// states. All other events pass.
//
// The next event that passes has the state just before it as Old, which handle was not told.
func Updates[T store.Object](handle func(informer.Event[T]), changed ...func(before, after T) bool) func(informer.Event[T]) {
	return func(e informer.Event[T]) {
		changes := func(changed func(before, after T) bool) bool { return changed(e.Old, e.New) }
		if e.Type != informer.Updated || slices.ContainsFunc(changed, changes) {
			handle(e)
		}
	}
}

// Generation reports a change of metadata.generation: of the spec, and not of the status alone. The
// server counts no generations for some kinds, such as ConfigMaps and Services: each of their
// updates is a change.
func Generation[T store.Object](before, after T) bool {
	return after.GetGeneration() == 0 || before.GetGeneration() != after.GetGeneration()
}

// Labels reports a change of the labels.
func Labels[T store.Object](before, after T) bool {
	return !maps.Equal(before.GetLabels(), after.GetLabels())
}

// Annotations reports a change of the annotations.
func Annotations[T store.Object](before, after T) bool {
	return !maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

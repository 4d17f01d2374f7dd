package listwatch

import "github.com/tributary-go/tributary/store"

// copier copies objects for a reader that may write into them. Copying an object decoded with
// sharing takes as long as decoding without, with a third of the allocations: texts stay shared.
type copier[T store.Object] struct{ needed bool }

// copierFor copies unless the reader only reads, or the source gives each object away.
func copierFor[T store.Object](source ListerWatcher[T], readOnly bool) copier[T] {
	lw, known := source.(*ListWatch[T])
	return copier[T]{needed: !readOnly && !(known && lw.private)}
}

func (c copier[T]) copied(obj T) T {
	if !c.needed {
		return obj
	}
	return obj.DeepCopyObject().(T)
}

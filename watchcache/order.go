package watchcache

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tributary-go/tributary/store"
)

// sorted collects objects in the order of lists: by namespace, then name.
func sorted[T store.Object](objects iter.Seq[T]) []T {
	return slices.SortedFunc(objects, compareObjects[T])
}

func compareObjects[T store.Object](a, b T) int {
	return compareKeys(a.GetNamespace(), a.GetName(), b.GetNamespace(), b.GetName())
}

func compareKeys(namespace, name, otherNamespace, otherName string) int {
	return cmp.Or(cmp.Compare(namespace, otherNamespace), cmp.Compare(name, otherName))
}

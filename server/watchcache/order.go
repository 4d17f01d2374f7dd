package watchcache

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/tributary-go/tributary/store"
)

// sorted collects objects in the order of lists: that of their keys, NAMESPACE/NAME, as in etcd.
func sorted[T store.Object](objects iter.Seq[T]) []T {
	return slices.SortedFunc(objects, compareObjects[T])
}

func compareObjects[T store.Object](a, b T) int {
	return compareKeys(a.GetNamespace(), a.GetName(), b.GetNamespace(), b.GetName())
}

// compareKeys compares the keys without making them. The slash behind a namespace counts: a-b comes
// before a.
func compareKeys(namespace, name, otherNamespace, otherName string) int {
	switch {
	case namespace == otherNamespace:
		return cmp.Compare(name, otherName)
	case strings.HasPrefix(otherNamespace, namespace) && namespace != "":
		return cmp.Compare('/', otherNamespace[len(namespace)])
	case strings.HasPrefix(namespace, otherNamespace) && otherNamespace != "":
		return cmp.Compare(namespace[len(otherNamespace)], '/')
	}
	return cmp.Compare(namespace, otherNamespace)
}

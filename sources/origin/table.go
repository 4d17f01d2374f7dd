package origin

import (
	"fmt"
	"slices"

	"github.com/tributary-go/tributary/store"
)

// entry is what one manifest declares: a file, or the body behind a URL.
type entry[T store.Object] struct {
	path string
	// objects are the manifest's; where a part of it is rejected, what that part declared when it was last good.
	objects  []T
	problems []error
	// known: it was once read without a problem. What it has declared since the beginning is in objects then, or was taken
	// back; what a part that is rejected declares is there as well, or has never been declared. Of an entry that was never
	// good nobody knows what it declares.
	known bool
}

// take brings the entry up to date with a manifest that was read. An object that was there stays when it may be what a
// rejected part was to declare: a half-written edit must not stop a pod. It returns how many of the objects are good.
func (e *entry[T]) take(objects []T, rejected []error) (good int) {
	kept := e.objects
	e.objects, e.problems = nil, nil
	var none T
	for i, object := range objects {
		if object == none || object.GetName() == "" {
			rejected = append(rejected, fmt.Errorf("%s, item %d: it has no name", e.path, i+1)) // which no store can hold
			continue
		}
		e.objects = append(e.objects, object)
	}
	good = len(e.objects)
	if len(rejected) == 0 {
		e.known = true
		return good
	}
	e.problems = append(e.problems, rejected...)
	for _, object := range kept {
		if !declares(e.objects, object) {
			e.objects = append(e.objects, object)
		}
	}
	return good
}

// fail keeps everything: the manifest could not be read.
func (e *entry[T]) fail(err error) { e.problems = []error{err} }

func declares[T store.Object](objects []T, object T) bool {
	return slices.ContainsFunc(objects, func(o T) bool { return store.KeyOf(o) == store.KeyOf(object) })
}

// table makes one state of many entries: where two declare an object of one key, the first path has it, and the other
// stands by.
func table[T store.Object](entries []*entry[T]) (now State[T], problems []error) {
	owner := map[string]string{}
	for _, e := range entries {
		problems = append(problems, e.problems...)
		for _, object := range e.objects {
			key := store.KeyOf(object)
			if path, taken := owner[key]; taken {
				problems = append(problems, fmt.Errorf("%s: %s is declared by %s already and stands by", e.path, key, path))
				continue
			}
			owner[key] = e.path
			now.Declared = append(now.Declared, object)
		}
	}
	var all store.Indexer[T]
	// Replace cannot fail: the objects have names.
	_ = all.Replace(store.Items(now.Declared...), store.At(""))
	now.Objects = all.Snapshot()
	return now, problems
}

// complete reports whether nothing that the entries declare is missing.
func complete[T store.Object](entries []*entry[T]) bool {
	return !slices.ContainsFunc(entries, func(e *entry[T]) bool { return !e.known })
}

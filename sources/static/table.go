package static

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/store"
)

// table joins many entries into one state. If several entries declare an object, one of them is its
// holder: the entry that had it before, while it declares it, or else the first by name. An entry
// that only holds its last known good object is the holder if no entry declares the object in its
// newest bytes.
type table[T store.Object] struct {
	holders map[string]string // by key, the path
}

// join makes the state of the entries, which are ordered by path.
func (t *table[T]) join(entries []*entry[T]) (now State[T], problems []error) {
	t.choose(entries)
	taken := map[string]bool{}
	for _, e := range entries {
		problems = append(problems, e.problems(t.holders)...)
		for _, object := range e.objects {
			key := store.KeyOf(object)
			switch holder := t.holders[key]; {
			case holder != e.path && e.holds(key): // its problem names the holder
			case holder != e.path, taken[key]:
				problems = append(problems, access.Mark("duplicate",
					fmt.Errorf("%s: %s is declared by %s already and stands by", e.path, key, holder)))
			default:
				taken[key] = true
				now.Declared = append(now.Declared, object)
			}
		}
	}
	var all store.Indexer[T]
	// Replace cannot fail: the objects have names.
	_ = all.Replace(store.Items(now.Declared...), store.At(""))
	now.Objects = all.Snapshot()
	return now, problems
}

// holds reports whether an entry is the holder of an object.
func (t *table[T]) holds(path string) bool {
	for _, holder := range t.holders {
		if holder == path {
			return true
		}
	}
	return false
}

// choose finds the holder of each object.
func (t *table[T]) choose(entries []*entry[T]) {
	good, held := map[string][]string{}, map[string][]string{} // by key, the paths
	for _, e := range entries {
		for key := range keysOf(e.objects) {
			if e.holds(key) {
				held[key] = append(held[key], e.path)
			} else {
				good[key] = append(good[key], e.path)
			}
		}
	}
	for key, paths := range held {
		if good[key] == nil {
			good[key] = paths
		}
	}
	before := t.holders
	t.holders = make(map[string]string, len(good))
	for key, paths := range good {
		t.holders[key] = holder(before[key], paths)
	}
}

// holder picks the holder of an object from the paths of the entries that may be it. before is the
// present holder, or empty.
func holder(before string, paths []string) string {
	if slices.Contains(paths, before) {
		return before
	}
	return slices.MinFunc(paths, byLength)
}

// byLength orders shorter names first: a copy's name is mostly longer than its original's.
func byLength(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// warnings are those of all entries.
func warnings[T store.Object](entries []*entry[T]) (all []error) {
	for _, e := range entries {
		all = append(all, e.warnings()...)
	}
	return all
}

// complete reports whether no declared object is missing.
func complete[T store.Object](entries []*entry[T]) bool {
	return !slices.ContainsFunc(entries, func(e *entry[T]) bool { return !e.complete() })
}

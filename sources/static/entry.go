package static

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/store"
)

// entry holds the objects of one manifest: a file, or the body behind a URL.
type entry[T store.Object] struct {
	path string
	// objects are those of the manifest, followed by those that are held for a rejected part.
	objects  []T
	problems []error
	// known: the manifest was once read without a problem. Since then a rejected part hides
	// nothing: its object is held, or was never declared. Before that, a rejected part may declare
	// anything.
	known bool

	// unnamed has the rejected parts of the last reading that have no readable name.
	unnamed map[string]bool
	// suspects maps the key of a held object to the rejected parts that may stand for it.
	suspects map[string][]string
}

// rejection is a rejected part of a manifest.
type rejection struct {
	err error
	key string // of the object that it declares; empty if that cannot be read
	id  string // the same in each reading of the same bytes
}

// rejections identifies the rejected parts. A second part with the same bytes gets another id.
func rejections(rejected []error) []rejection {
	parts := make([]rejection, 0, len(rejected))
	seen := map[string]int{}
	for _, err := range rejected {
		var key, digest string
		if part := interface{ Part() (key, digest string) }(nil); errors.As(err, &part) {
			key, digest = part.Part()
		} else {
			digest = err.Error()
		}
		seen[digest]++
		parts = append(parts, rejection{err, key, fmt.Sprint(seen[digest], " ", digest)})
	}
	return parts
}

// take brings the entry up to date with a new reading. An object that has gone from the manifest is
// held while a rejected part may stand for it: a half-written edit must not stop a pod.
//   - A part with a readable name stands for the object of that name alone.
//   - Any other part may stand for each object that went when the part came, and for none that goes
//     later.
//
// A part that was there before any object went costs only itself.
func (e *entry[T]) take(objects []T, rejected []error) {
	before, unnamed, suspects := e.objects, e.unnamed, e.suspects
	e.objects, e.problems = nil, nil
	e.unnamed, e.suspects = map[string]bool{}, map[string][]string{}
	for i, object := range objects {
		if pointer.None(object) || object.GetName() == "" { // a store needs a name
			rejected = append(rejected, fmt.Errorf("%s, item %d: it has no name", e.path, i+1))
			continue
		}
		e.objects = append(e.objects, object)
	}
	e.known = e.known || len(rejected) == 0
	parts := rejections(rejected)
	named := map[string][]string{}
	var came []string // parts without a name that were not there before
	for _, part := range parts {
		switch {
		case part.key != "":
			named[part.key] = append(named[part.key], part.id)
			continue
		case !unnamed[part.id]:
			came = append(came, part.id)
		}
		e.unnamed[part.id] = true
	}
	good := keysOf(e.objects)
	for _, object := range before {
		key := store.KeyOf(object)
		if good[key] {
			continue
		}
		by := named[key]
		if len(by) == 0 {
			by = slices.DeleteFunc(slices.Clone(suspects[key]), func(id string) bool { return !e.unnamed[id] })
		}
		if len(by) == 0 {
			by = came
		}
		if len(by) > 0 {
			good[key] = true // held once, if it was declared twice
			e.objects, e.suspects[key] = append(e.objects, object), by
		}
	}
	for _, part := range parts {
		e.problems = append(e.problems, access.Mark("undecodable", e.explain(part)))
	}
}

// explain adds the objects that are held for a rejected part to its error.
func (e *entry[T]) explain(part rejection) error {
	var held []string
	for key, by := range e.suspects {
		if slices.Contains(by, part.id) {
			held = append(held, key)
		}
	}
	switch {
	case len(held) == 0:
		return part.err
	case part.key != "":
		return fmt.Errorf("%w; until this is mended or gone, the last good %s is kept", part.err, list(held))
	}
	return fmt.Errorf("%w; this may stand for %s: the last good state is kept until this is mended or gone", part.err, list(held))
}

// fail keeps all objects, because the manifest could not be read.
func (e *entry[T]) fail(err error) {
	if len(e.objects) > 0 {
		var held []string
		for key := range keysOf(e.objects) {
			held = append(held, key)
		}
		err = fmt.Errorf("%w; until it can be read, the last good state of %s is kept", err, list(held))
	}
	e.problems = []error{err}
}

func keysOf[T store.Object](objects []T) map[string]bool {
	keys := make(map[string]bool, len(objects))
	for _, object := range objects {
		keys[store.KeyOf(object)] = true
	}
	return keys
}

// maxListed bounds the keys in a message.
const maxListed = 10

func list(keys []string) string {
	slices.Sort(keys)
	more := ""
	if n := len(keys) - maxListed; n > 0 {
		keys, more = keys[:maxListed], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(keys, ", ") + more
}

// table joins many entries into one state. If several entries declare an object, one of them is its
// holder: the entry that had it before, while it declares it, or else the first by name. A copy is
// never the holder beside its original.
type table[T store.Object] struct {
	holders map[string]string // by key, the path
}

// join makes the state of the entries, which are ordered by path.
func (t *table[T]) join(entries []*entry[T]) (now State[T], problems []error) {
	declare := map[string][]string{} // by key, the paths
	for _, e := range entries {
		for key := range keysOf(e.objects) {
			declare[key] = append(declare[key], e.path)
		}
	}
	before := t.holders
	t.holders = make(map[string]string, len(declare))
	for key, paths := range declare {
		t.holders[key] = holder(before[key], paths)
	}
	taken := map[string]bool{}
	for _, e := range entries {
		problems = append(problems, e.problems...)
		for _, object := range e.objects {
			key := store.KeyOf(object)
			switch holder := t.holders[key]; {
			case holder != e.path && isCopy(e.path, holder):
				problems = append(problems, access.Mark("duplicate",
					fmt.Errorf("%s: %s is declared by %s, of which this is a copy by its name, and stands by", e.path, key, holder)))
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

// holder picks the holder of an object from the paths of all entries that declare it. before is the
// present holder, or empty.
func holder(before string, paths []string) string {
	now := before
	if !slices.Contains(paths, before) {
		now = slices.MinFunc(paths, byLength)
	}
	for { // the loop ends: a copy's name is longer than its original's
		i := slices.IndexFunc(paths, func(path string) bool { return isCopy(now, path) })
		if i < 0 {
			return now
		}
		now = paths[i]
	}
}

// byLength orders shorter names first: a copy's name is mostly longer than its original's.
func byLength(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }

// complete reports whether no declared object is missing.
func complete[T store.Object](entries []*entry[T]) bool {
	return !slices.ContainsFunc(entries, func(e *entry[T]) bool { return !e.known })
}

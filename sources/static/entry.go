package static

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/internal/limit"
	"github.com/tributary-go/tributary/store"
)

// entry holds the objects of one manifest: a file, or the body behind a URL.
type entry[T store.Object] struct {
	path string
	// objects are those of the manifest, followed by those that are held for a rejected part.
	objects  []T
	rejected []rejection // the parts of the last reading that gave no object
	remarks  []error     // of Warning, in the last reading
	found    bool        // in a folder; no one has said that the file is a manifest
	// unreadable is why the newest bytes could not be read. Then all objects are held.
	unreadable error
	// known: the manifest was once read without a problem. Since then a rejected part hides
	// nothing: its object is held, or was never declared. Before that, a rejected part may declare
	// anything.
	known bool

	// blamed has, by the key of a held object, the IDs of the rejected parts that may stand for it.
	blamed map[string][]string
	// nameless has the IDs of the rejected parts that have no readable name.
	nameless map[string]bool
}

// take brings the entry up to date with a new reading. An object that has gone from the manifest is
// held while a rejected part may stand for it: a half-written edit must not stop a pod.
func (e *entry[T]) take(objects []T, rejected []error) {
	good := make([]T, 0, len(objects))
	for i, object := range objects {
		if pointer.None(object) || object.GetName() == "" { // a store needs a name
			rejected = append(rejected, fmt.Errorf("%s, item %d: it has no name", e.path, i+1))
		} else {
			good = append(good, object)
		}
	}
	e.rejected, e.remarks = rejections(rejected)
	e.unreadable = nil
	e.known = e.known || e.good()
	e.objects = append(good, e.blame(e.rejected, keysOf(good))...)
}

// foreignTo is an error if a reading has nothing of the wanted kind, good or bad, and does not say
// that there is nothing: a page of a login says nothing about the objects.
func foreignTo[T store.Object](objects []T, rejected []error) error {
	parts, _ := rejections(rejected)
	wanted := func(part rejection) bool { return part.placed && !errors.Is(part.err, limit.ErrForeign) }
	if len(objects) > 0 || len(parts) == 0 || slices.ContainsFunc(parts, wanted) {
		return nil
	}
	return parts[0].err
}

// good reports whether the newest bytes were read without a problem.
func (e *entry[T]) good() bool { return e.unreadable == nil && len(e.rejected) == 0 }

// holds reports whether the object is a last known good one, which the newest bytes do not declare.
func (e *entry[T]) holds(key string) bool { return e.unreadable != nil || e.blamed[key] != nil }

// blame returns the objects of the last reading that have gone and are held. Each has its reason:
//   - A part with a readable name stands for the object of that name alone.
//   - Any other part may stand for each object that went when the part came, and for none that goes
//     later.
//
// A part that was there before any object went costs only itself.
func (e *entry[T]) blame(parts []rejection, good map[string]bool) (held []T) {
	named, nameless := map[string][]string{}, map[string]bool{}
	var came []string // the nameless parts that the last reading did not have
	for _, part := range parts {
		switch {
		case part.key != "":
			named[part.key] = append(named[part.key], part.id)
			continue
		case !e.nameless[part.id]:
			came = append(came, part.id)
		}
		nameless[part.id] = true
	}
	blamed := map[string][]string{}
	for _, object := range e.objects {
		key := store.KeyOf(object)
		if good[key] || blamed[key] != nil { // held once, if it was declared twice
			continue
		}
		stay := slices.DeleteFunc(slices.Clone(e.blamed[key]), func(id string) bool { return !nameless[id] })
		if by := firstOf(named[key], stay, came); by != nil {
			blamed[key] = by
			held = append(held, object)
		}
	}
	e.blamed, e.nameless = blamed, nameless
	return held
}

// firstOf is the first list that is not empty, or nil.
func firstOf(lists ...[]string) []string {
	for _, list := range lists {
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// foreign reports whether the file is no manifest: nothing can be read from it, nothing is held for
// it, and it has no document, or the name of something else.
func (e *entry[T]) foreign() bool {
	switch {
	case !e.found, len(e.objects) > 0, e.good():
		return false
	case e.unreadable != nil:
		return isForeign(e.path) && errors.Is(e.unreadable, limit.ErrTooLarge)
	}
	document := func(part rejection) bool { return !errors.Is(part.err, limit.ErrEmpty) }
	return isForeign(e.path) || !slices.ContainsFunc(e.rejected, document)
}

// complete reports whether no object that the manifest declares is missing.
func (e *entry[T]) complete() bool { return e.known || e.foreign() }

// warnings are the remarks that hide no object.
func (e *entry[T]) warnings() []error {
	switch {
	case !e.foreign():
		return e.remarks
	case isForeign(e.path):
		return []error{access.Mark("foreign", fmt.Errorf("%s is no manifest, and is passed over", e.path))}
	}
	return []error{access.Mark("foreign", fmt.Errorf("%s has no document, and is passed over", e.path))}
}

// problems is the fault of each rejected part, or of the file that cannot be read, with the objects
// that are held for it. holders has, by key, the path of the manifest whose object counts.
func (e *entry[T]) problems(holders map[string]string) (problems []error) {
	if e.foreign() {
		return nil
	}
	if e.unreadable != nil {
		kept, others := e.divide(slices.Collect(maps.Keys(keysOf(e.objects))), holders)
		err := e.unreadable
		if len(kept) > 0 {
			err = fmt.Errorf("%w; until it can be read, the last good state of %s is kept", err, list(kept))
		}
		return []error{meanwhile(err, others)}
	}
	held := map[string][]string{} // by the ID of the part, the keys
	for key, by := range e.blamed {
		for _, id := range by {
			held[id] = append(held[id], key)
		}
	}
	for _, part := range e.rejected {
		err := part.err
		kept, others := e.divide(held[part.id], holders)
		switch {
		case len(kept) == 0:
		case part.key != "":
			err = fmt.Errorf("%w; until this is mended or gone, the last good %s is kept", err, list(kept))
		default:
			err = fmt.Errorf("%w; this may stand for %s: the last good state is kept until this is mended or gone", err, list(kept))
		}
		problems = append(problems, access.Mark("undecodable", meanwhile(err, others)))
	}
	return problems
}

// divide splits held objects into those that count, and those that another manifest declares: a
// text for each.
func (e *entry[T]) divide(held []string, holders map[string]string) (kept, others []string) {
	for _, key := range held {
		if holder := holders[key]; holder == e.path {
			kept = append(kept, key)
		} else {
			others = append(others, key+" is declared by "+holder)
		}
	}
	return kept, others
}

func meanwhile(err error, others []string) error {
	if len(others) == 0 {
		return err
	}
	return fmt.Errorf("%w; meanwhile %s", err, list(others))
}

// fail keeps all objects, because the manifest could not be read.
func (e *entry[T]) fail(err error) { e.unreadable = err }

// rejection is a rejected part of a manifest.
type rejection struct {
	err error
	key string // of the object that it declares; empty if that cannot be read
	id  string // the same in each reading of the same bytes
	// placed: the decoder tells which part of the manifest it is
	placed bool
}

// rejections identifies the rejected parts, and leaves out warnings. A second part with the same
// bytes gets another id.
func rejections(rejected []error) (parts []rejection, remarks []error) {
	seen := map[string]int{}
	for _, err := range rejected {
		if errors.As(err, new(warning)) {
			remarks = append(remarks, err)
			continue
		}
		var key, digest string
		part := interface{ Part() (key, digest string) }(nil)
		placed := errors.As(err, &part)
		if placed {
			key, digest = part.Part()
		} else {
			digest = err.Error()
		}
		seen[digest]++
		parts = append(parts, rejection{err, key, fmt.Sprint(seen[digest], " ", digest), placed})
	}
	return parts, remarks
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

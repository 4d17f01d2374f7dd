package histories

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/watch"
)

// Property is a promise of lists and watches. The names and meanings are those of etcd's watch
// guarantees (https://etcd.io/docs/v3.6/learning/api_guarantees/#watch-apis), which the API server
// passes on.
type Property string

// The properties, in the order in which a stream is judged.
const (
	// Ordered: in a stream, no event is older than the one before it. No stream begins with a state
	// older than the reader's last one.
	Ordered Property = "ordered"
	// Unique: in a stream, no version comes twice.
	Unique Property = "unique"
	// Atomic: a state is whole, which means the collection was in this state at one version.
	Atomic Property = "atomic"
	// Bookmarkable: after a bookmark, every event is newer and no bookmark is older. No bookmark is
	// older than an event before it.
	Bookmarkable Property = "bookmarkable"
	// Resumable: a stream begins with the first change after its version, and that version is not
	// ahead of the reader's last one.
	Resumable Property = "resumable"
	// Reliable: between its first version and its last, a stream has every change that was made,
	// and no other.
	Reliable Property = "reliable"
)

// Violation is a property that a history breaks, and the place where it does.
type Violation struct {
	Property Property
	// Reader is the history's. Stream is the number of the stream in it, from 0.
	Reader string
	Stream int
	// Key is the object's; empty for a bookmark or a state.
	Key string
	// ResourceVersion is that of the event, bookmark or state; empty if there is none.
	ResourceVersion string
	// Detail names the expected event.
	Detail string
}

// Error names the reader, the property, the object and the versions.
func (v *Violation) Error() string {
	where := "version " + v.ResourceVersion
	if v.ResourceVersion == "" {
		where = "a state without a version"
	}
	if v.Key != "" {
		where = v.Key + " at " + where
	}
	return fmt.Sprintf("histories: %s broke %s in stream %d: %s: %s", v.Reader, v.Property, v.Stream, where, v.Detail)
}

// maxViolations bounds the length of an error: one loss can break every stream after it.
const maxViolations = 20

// Check judges the histories of readers by the writes. It returns nil, or the violations
// as one error: errors.As finds the first *[Violation]. At most 20 are named.
//
// changes are all writes to the part of the collection that the readers select, from its first
// version on and in the order of versions: see [Follow]. If changes is nil, each history is judged
// by itself. Then a loss shows only if a later event does not follow from the reader's state: an
// object is added twice, or modified or deleted while absent.
//
// A handler is not told of a relist that changes nothing for it. So a handler's history may lack
// writes that undo each other; a source's and a store's may not.
//
// Resource versions must be decimal numbers. Contents are not compared: two objects with one key
// and one version count as equal.
func Check(changes []Change, histories ...History) error {
	truth, err := readChanges(changes)
	if err != nil {
		return err
	}
	var all []error
	for _, h := range histories {
		j := &judge{truth: truth, known: changes != nil, history: h}
		for n, s := range h.Streams {
			j.stream = n
			j.judge(s)
		}
		all = append(all, j.found...)
	}
	if len(all) > maxViolations {
		all = append(all[:maxViolations], fmt.Errorf("histories: and %d more", len(all)-maxViolations))
	}
	return errors.Join(all...)
}

type write struct {
	Change
	version uint64
}

func readChanges(changes []Change) ([]write, error) {
	truth := make([]write, 0, len(changes))
	last := uint64(0)
	for _, c := range changes {
		w := write{c, versionOf(c.ResourceVersion)}
		if w.version <= last {
			return nil, fmt.Errorf("histories: the changes are not in order: %s %s at version %q follows version %d",
				c.Type, c.Key, c.ResourceVersion, last)
		}
		last = w.version
		truth = append(truth, w)
	}
	return truth, nil
}

// versionOf returns 0 if resourceVersion is not a number.
func versionOf(resourceVersion string) uint64 {
	v, _ := strconv.ParseUint(resourceVersion, 10, 64)
	return v
}

func newer(a, b string) bool { return versionOf(a) > versionOf(b) }

func (c Change) apply(objects map[string]string) {
	if c.Type == watch.Deleted {
		delete(objects, c.Key)
	} else if c.Type != watch.Bookmark {
		objects[c.Key] = c.ResourceVersion
	}
}

// judge checks one history, stream by stream.
type judge struct {
	truth   []write
	known   bool // the writes are known
	history History
	stream  int
	told    uint64            // the newest version that the reader was told of
	held    map[string]string // the reader's objects, if the writes are unknown; nil: unknown too
	found   []error
}

func (j *judge) broke(p Property, key, version, format string, args ...any) {
	j.found = append(j.found, &Violation{
		Property: p, Reader: j.history.Reader, Stream: j.stream, Key: key, ResourceVersion: version, Detail: fmt.Sprintf(format, args...),
	})
}

func (j *judge) judge(s Stream) {
	if !j.readable(s) {
		return
	}
	before := len(j.found)
	after, placed := j.begin(s)
	j.inOrder(s)
	switch {
	case !j.known:
		j.follows(s)
	case placed && len(j.found) == before: // one fault has one name
		j.complete(s, after)
	}
	for _, c := range s.Told {
		j.told = max(j.told, versionOf(c.ResourceVersion))
	}
	if s.Listed == nil || s.Listed.ResourceVersion != "" {
		j.told = max(j.told, after)
	}
}

func (j *judge) readable(s Stream) bool {
	bad := func(version string) bool { _, err := strconv.ParseUint(version, 10, 64); return err != nil }
	if s.Listed != nil && s.Listed.ResourceVersion != "" && bad(s.Listed.ResourceVersion) || s.After != "" && bad(s.After) {
		j.broke(Ordered, "", s.After, "the version is not a decimal number, so it cannot be judged")
		return false
	}
	for _, c := range s.Told {
		if bad(c.ResourceVersion) {
			j.broke(Ordered, c.Key, c.ResourceVersion, "the version is not a decimal number, so it cannot be judged")
			return false
		}
	}
	return true
}

// begin judges the beginning of a stream and returns the version that its changes follow. placed is
// false if that version is unknown.
func (j *judge) begin(s Stream) (after uint64, placed bool) {
	if s.Listed == nil {
		after = versionOf(s.After)
		if after > j.told && j.told > 0 {
			if missed := j.between(j.told, after); len(missed) > 0 {
				j.broke(Resumable, missed[0].Key, missed[0].ResourceVersion, "the watch resumes after version %d, but the reader was told nothing newer than %d", after, j.told)
			}
		}
		if after != j.told {
			j.held = nil
		}
		return after, true
	}
	j.held = map[string]string{}
	maps.Copy(j.held, s.Listed.Objects)
	if s.Listed.ResourceVersion == "" {
		return j.place(s)
	}
	after = versionOf(s.Listed.ResourceVersion)
	if after < j.told {
		j.broke(Ordered, "", s.Listed.ResourceVersion, "the state is older than version %d, which the reader was told before", j.told)
	}
	if j.known {
		if want := j.state(after); !maps.Equal(want, s.Listed.Objects) {
			j.broke(Atomic, "", s.Listed.ResourceVersion, "%s", difference(want, s.Listed.Objects))
		}
	}
	return after, true
}

// place finds the version of a state that came without one. It is the newest version before the
// next event, not older than the reader's, at which the collection was in that state.
func (j *judge) place(s Stream) (after uint64, placed bool) {
	if !j.known {
		return 0, false
	}
	from, until := j.told, uint64(math.MaxUint64)
	for _, version := range s.Listed.Objects {
		from = max(from, versionOf(version))
	}
	j.told = from // without a next event, the newest version that fits may be too new
	for _, c := range s.Told {
		if c.Type != watch.Bookmark {
			until = versionOf(c.ResourceVersion)
			break
		}
	}
	state, first := map[string]string{}, true
	var nearest string
	consider := func(version, next uint64) {
		if next <= from || version >= until {
			return // over already, or not yet reached
		}
		if maps.Equal(state, s.Listed.Objects) {
			after, placed = version, true
		} else if first {
			nearest = fmt.Sprintf("at version %d %s", version, difference(state, s.Listed.Objects))
		}
		first = false
	}
	version := uint64(0)
	for _, w := range j.truth {
		consider(version, w.version)
		w.apply(state)
		version = w.version
	}
	consider(version, math.MaxUint64)
	if !placed {
		j.broke(Atomic, "", "", "the collection was never in this state from version %d on and before the next event: %s", from, nearest)
	}
	return max(after, from), placed
}

func (j *judge) state(version uint64) map[string]string {
	objects := map[string]string{}
	for _, w := range j.truth {
		if w.version > version {
			break
		}
		w.apply(objects)
	}
	return objects
}

// between returns the changes after one version, up to and including another.
func (j *judge) between(after, upTo uint64) []write {
	place := func(version uint64) int {
		i, found := slices.BinarySearchFunc(j.truth, version, func(w write, v uint64) int {
			switch {
			case w.version < v:
				return -1
			case w.version > v:
				return 1
			}
			return 0
		})
		if found {
			i++
		}
		return i
	}
	from, to := place(after), place(upTo)
	return j.truth[from:max(from, to)]
}

// inOrder judges a stream without knowing the writes.
func (j *judge) inOrder(s Stream) {
	var last, mark uint64
	seen := map[uint64]bool{}
	for _, c := range s.Told {
		version := versionOf(c.ResourceVersion)
		if c.Type == watch.Bookmark {
			switch {
			case version < mark:
				j.broke(Bookmarkable, "", c.ResourceVersion, "a bookmark at version %d came before it", mark)
			case version < last:
				j.broke(Bookmarkable, "", c.ResourceVersion, "an event at version %d came before it", last)
			}
			mark = version
			continue
		}
		if version < last {
			j.broke(Ordered, c.Key, c.ResourceVersion, "an event at version %d came before it", last)
		}
		if seen[version] {
			j.broke(Unique, c.Key, c.ResourceVersion, "an event at this version came before")
		}
		if version <= mark {
			j.broke(Bookmarkable, c.Key, c.ResourceVersion, "a bookmark at version %d came before it: everything up to there had been told", mark)
		}
		seen[version], last = true, version
	}
}

// complete compares a stream with the writes after its first version.
func (j *judge) complete(s Stream, after uint64) {
	if len(s.Told) == 0 {
		return
	}
	last := versionOf(s.Told[len(s.Told)-1].ResourceVersion)
	want := j.between(after, last)
	n := 0
	// held is set only for a handler, which is not told of a relist without changes.
	var held map[string]string
	if s.Listed != nil && s.Listed.ResourceVersion == "" {
		held = map[string]string{}
		maps.Copy(held, s.Listed.Objects)
	}
	for _, c := range s.Told {
		if c.Type == watch.Bookmark {
			continue
		}
		n += undone(want[n:], held, c)
		if n < len(want) && want[n].Change == c {
			if held != nil {
				c.apply(held)
			}
			n++
			continue
		}
		property, key, version, detail := Reliable, c.Key, c.ResourceVersion, "there was no such change"
		if n < len(want) && want[n].version <= versionOf(c.ResourceVersion) {
			key, version = want[n].Key, want[n].ResourceVersion
			detail = fmt.Sprintf("it was %s, but the reader was told of %s %s at version %s instead",
				want[n].Type, c.Type, c.Key, c.ResourceVersion)
		}
		if n == 0 && len(j.between(after, math.MaxUint64)) > 0 {
			// The stream should have begun with another event.
			property = Resumable
			detail += fmt.Sprintf(", as the first event after version %d", after)
		}
		j.broke(property, key, version, "%s", detail)
		return
	}
	n += undone(want[n:], held, Change{})
	if n < len(want) {
		j.broke(Reliable, want[n].Key, want[n].ResourceVersion,
			"it was %s, but by version %d the reader was not told of it", want[n].Type, last)
	}
}

// undone counts the writes before next that together change nothing. A relist that skips them tells
// a handler nothing. next is zero at the end; held is nil for a reader that is told of relists.
func undone(writes []write, held map[string]string, next Change) int {
	if held == nil || len(writes) == 0 || writes[0].Change == next {
		return 0
	}
	after := maps.Clone(held)
	for i, w := range writes {
		if w.Change == next {
			if maps.Equal(after, held) {
				return i
			}
			return 0
		}
		w.apply(after)
	}
	if next == (Change{}) && maps.Equal(after, held) {
		return len(writes)
	}
	return 0
}

// follows judges each event by the objects that the reader has.
func (j *judge) follows(s Stream) {
	if j.held == nil {
		return
	}
	for _, c := range s.Told {
		_, there := j.held[c.Key]
		switch {
		case c.Type == watch.Added && there:
			j.broke(Reliable, c.Key, c.ResourceVersion, "it was added, but the reader had it already")
		case (c.Type == watch.Modified || c.Type == watch.Deleted) && !there:
			j.broke(Reliable, c.Key, c.ResourceVersion, "it was %s, but the reader did not have it", c.Type)
		}
		c.apply(j.held)
	}
}

func difference(want, got map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if version, ok := got[key]; !ok {
			return fmt.Sprintf("the state lacks %s at version %s", key, want[key])
		} else if version != want[key] {
			return fmt.Sprintf("the state has %s at version %s, not %s", key, version, want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			return fmt.Sprintf("the state has %s at version %s, which did not exist", key, got[key])
		}
	}
	return "it was the same"
}

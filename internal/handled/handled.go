// Package handled knows which keys of a controller have been handled in their present state, across
// restarts.
//
// The state of a key is a sum over the objects that concern it. A file has a line for each step: a
// key has begun, or is done at a state. It is replaced atomically once most of its lines are
// superseded. Begin returns after its line is written. So if the process is killed, the file has
// each key that was being worked on as begun. Nothing is synced to the disk: after a power failure,
// the file may be damaged, or lack the lines of the last seconds.
package handled

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/ownfile"
	"github.com/tributary-go/tributary/store"
)

// Digest identifies a state. The zero Digest is the state of nothing.
type Digest [16]byte

// Of identifies a version of an object, as one feed has it.
func Of(feed string, obj metav1.Object) (d Digest) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q", feed, obj.GetNamespace(), obj.GetName(), obj.GetUID(), obj.GetResourceVersion()))
	copy(d[:], sum[:])
	return d
}

// add adds a multiple of another digest, half by half. Sums of SHA-256 do not meet by chance.
func (d Digest) add(other Digest, times uint64) (sum Digest) {
	for i := 0; i < len(d); i += 8 {
		binary.BigEndian.PutUint64(sum[i:], binary.BigEndian.Uint64(d[i:])+times*binary.BigEndian.Uint64(other[i:]))
	}
	return sum
}

const (
	// slack is how many superseded lines a small file may have.
	slack = 1000
	// again is how long a file that could not be written is left alone.
	again = time.Minute
	// pass is the age of the last full pass from which on a start is one.
	pass = 24 * time.Hour
)

// entry is a key's last step.
type entry struct {
	done  bool // otherwise begun
	state Digest
}

// File is the file, and the present state of the keys. Its methods are safe for concurrent use. A
// nil File keeps nothing.
type File[K comparable] struct {
	path  string
	warn  func(error)
	slack int
	lock  *os.File

	counting sync.Mutex        // guards the next three fields
	present  map[string]Digest // of keys with objects
	moved    map[string]bool   // keys in work, and whether their state has changed meanwhile
	seen     []store.Version   // the newest version of an object, by feed

	mu      sync.Mutex // guards the fields below
	header  header
	entries map[string]entry
	out     *os.File // nil while the file is absent: it could not be written
	lines   int
	tried   time.Time // the last attempt to write an absent file
	closed  bool
}

// Owner is whose file it is. The feeds are those of the keys, in their order.
type Owner struct {
	Name, Version string
	Feeds         []string
}

// Open reads the file, if there is one, and replaces it. It fails if the file cannot be read or
// written, if it is another controller's, or if another File has it. After another version, or a
// full pass a day ago, every key is due again. Of a damaged file, the keys that can be read are
// due. warn is told why, and of each later error of writing.
func Open[K comparable](path string, owner Owner, warn func(error)) (_ *File[K], err error) {
	if key := reflect.TypeFor[K](); key.Kind() != reflect.String {
		return nil, fmt.Errorf("keys must be strings, and are of type %s", key)
	}
	f := &File[K]{
		path: path, warn: warn, slack: slack, entries: map[string]entry{},
		present: map[string]Digest{}, moved: map[string]bool{}, seen: make([]store.Version, len(owner.Feeds)),
	}
	if f.lock, err = ownfile.Lock(path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err = f.read(owner); err == nil {
		err = f.replace()
	}
	if err != nil {
		return nil, errors.Join(err, f.lock.Close())
	}
	return f, nil
}

// read takes what the file has.
func (f *File[K]) read(owner Owner) error {
	f.header = header{Owner: owner, Passed: time.Now(), Reached: make([]store.Version, len(owner.Feeds))}
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	was, damage := f.parse(text)
	switch {
	case damage != nil:
	case was.Name != owner.Name:
		return fmt.Errorf("%s is of the controller %q, and not of %q: give each a file of its own", f.path, was.Name, owner.Name)
	case was.Version != owner.Version || !slices.Equal(was.Feeds, owner.Feeds):
		damage = errors.New("it was written by another version of the controller")
	case time.Since(was.Passed).Abs() > pass:
		damage = errors.New("the last full pass is more than a day ago")
	}
	if damage != nil {
		f.passLocked()
		f.warn(fmt.Errorf("%s: %w", f.path, damage))
		return nil
	}
	f.header.Passed, f.header.Reached = was.Passed, was.Reached
	return nil
}

// passLocked has every key due: from here on the file knows of none that it is done.
func (f *File[K]) passLocked() {
	for key := range f.entries {
		f.entries[key] = entry{}
	}
	f.header.Passed, f.header.Reached = time.Now(), make([]store.Version, len(f.header.Feeds))
}

// set keeps a step. A key that is done with nothing is forgotten.
func (f *File[K]) set(key string, e entry) {
	if f.entries[key] = e; e.done && e.state == (Digest{}) {
		delete(f.entries, key)
	}
}

// Trace is a version of an object, in the state of the keys that it concerns.
type Trace[K comparable] struct {
	Keys    []K
	Version Digest
	At      store.Version
}

// Change replaces a version of an object by the next one, as the feed of a number tells it.
func (f *File[K]) Change(feed int, before, now Trace[K]) {
	if f == nil {
		return
	}
	f.counting.Lock()
	defer f.counting.Unlock()
	if seen := &f.seen[feed]; *seen == "" || seen.Before(now.At) {
		*seen = now.At
	}
	for _, key := range before.Keys {
		f.countLocked(key, before.Version, ^uint64(0))
	}
	for _, key := range now.Keys {
		f.countLocked(key, now.Version, 1)
	}
}

func (f *File[K]) countLocked(key K, version Digest, times uint64) {
	line := lineOf(key)
	if _, inWork := f.moved[line]; inWork {
		f.moved[line] = true
	}
	if f.present[line] = f.present[line].add(version, times); f.present[line] == (Digest{}) {
		delete(f.present, line)
	}
}

// lineOf is a key in the file. Keys of other types than strings are in none.
func lineOf[K comparable](key K) string { return reflect.ValueOf(&key).Elem().String() }

// Due yields the keys with a state that is not done, and those that have begun. Keys without
// objects are among them. It yields all keys if all is true, or if one of the copies, by feed, is
// at an older version than the file has seen: an etcd that was restored gives versions anew.
func (f *File[K]) Due(all bool, copies []store.Version) iter.Seq[K] {
	if f == nil {
		return func(func(K) bool) {}
	}
	f.counting.Lock()
	defer f.counting.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, at := range copies {
		if at.Before(f.header.Reached[i]) {
			f.warn(fmt.Errorf("%s has seen version %s of %s, which is at %s now: its history was restored, and every key is due", f.path, f.header.Reached[i], f.header.Feeds[i], at))
			all = true
		}
	}
	if all {
		f.passLocked()
		if err := f.writeLocked(""); err != nil {
			f.warn(err)
		}
	}
	due := maps.Clone(f.entries)
	for key, state := range f.present {
		if e := (entry{true, state}); due[key] == e {
			delete(due, key)
		} else {
			due[key] = e
		}
	}
	return func(yield func(K) bool) {
		for line := range due {
			var key K
			reflect.ValueOf(&key).Elem().SetString(line)
			if !yield(key) {
				return
			}
		}
	}
}

// Call makes a call for a key, and notes its begin and its success. It blocks until the feeds have
// caught up: Change was called then for all that the call can have read. After over, it does not
// wait for them, and the key stays begun. A key is in one call at a time.
func (f *File[K]) Call(ctx context.Context, key K, call func(context.Context, K) error, caughtUp func() bool, over <-chan struct{}) error {
	if f == nil {
		return call(ctx, key)
	}
	if err := f.Begin(key); err != nil {
		return err
	}
	if err := call(ctx, key); err != nil {
		return err
	}
	for pause := 10 * time.Microsecond; !caughtUp(); pause = min(2*pause, 10*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-over:
			return nil
		}
	}
	f.Done(key)
	return nil
}

// Begin notes that work on a key begins. It fails if the file has the key as done, and can neither
// be written nor removed: the work must not begin then.
func (f *File[K]) Begin(key K) error {
	line := lineOf(key)
	f.counting.Lock()
	f.moved[line] = false
	f.counting.Unlock()
	return f.step(line, entry{}, nil)
}

// Done notes that the present state of a key is done, unless that has changed since Begin. Call it
// after Change was called for every change that the work may have seen: otherwise the work may have
// seen an object that comes and goes, and the file would not tell.
func (f *File[K]) Done(key K) {
	line := lineOf(key)
	f.counting.Lock()
	state, moved, seen := f.present[line], f.moved[line], slices.Clone(f.seen)
	delete(f.moved, line)
	f.counting.Unlock()
	if !moved {
		_ = f.step(line, entry{true, state}, seen)
	}
}

// step notes a step, and the versions that the feeds have seen by then.
func (f *File[K]) step(key string, e entry, seen []store.Version) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.header.reach(seen)
	old, known := f.entries[key]
	if known && old == e {
		return nil
	}
	f.set(key, e)
	err := f.writeLocked(line(key, e, seen))
	if err != nil && !e.done {
		delete(f.entries, key) // the next Begin of the key tries again
		if known {
			f.entries[key] = old
		}
	}
	return err
}

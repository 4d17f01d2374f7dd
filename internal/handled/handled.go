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
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	magic = "tributary handled 1 "
	// slack is how many superseded lines a small file may have.
	slack = 1000
	// again is how long a file that could not be written is left alone.
	again = time.Minute
)

// entry is a key's last step.
type entry struct {
	done  bool // otherwise begun
	state Digest
}

// File is the file, and the present state of the keys. Its methods are safe for concurrent use. A
// nil File keeps nothing.
type File[K comparable] struct {
	path, header string
	warn         func(error)
	slack        int

	counting sync.Mutex        // guards the next two fields
	present  map[string]Digest // of keys with objects
	moved    map[string]bool   // keys in work, and whether their state has changed meanwhile

	mu      sync.Mutex // guards the fields below
	entries map[string]entry
	out     *os.File // nil while the file is absent: it could not be written
	lines   int
	tried   time.Time // the last attempt to write an absent file
}

// Open reads the file, if there is one, and replaces it. It fails if the file cannot be read or
// written. A file that is damaged, or of another version, counts as empty. warn is told so, and of
// each later error of writing.
func Open[K comparable](path, version string, warn func(error)) (*File[K], error) {
	if key := reflect.TypeFor[K](); key.Kind() != reflect.String {
		return nil, fmt.Errorf("keys must be strings, and are of type %s", key)
	}
	f := &File[K]{path: path, header: magic + strconv.Quote(version), warn: warn, slack: slack, entries: map[string]entry{}, present: map[string]Digest{}, moved: map[string]bool{}}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		if err := f.parse(text); err != nil {
			clear(f.entries)
			warn(fmt.Errorf("%s: %w", path, err))
		}
	}
	if err := f.replace(); err != nil {
		return nil, err
	}
	return f, nil
}

// parse takes the entries. An unfinished last line is of a step that had no consequence yet.
func (f *File[K]) parse(text []byte) error {
	n := 0
	for line := range bytes.Lines(text) {
		line, whole := bytes.CutSuffix(line, []byte("\n"))
		n++
		switch {
		case n == 1 && !bytes.HasPrefix(line, []byte(magic)):
			return errors.New("it is not a file of handled keys")
		case n == 1 && string(line) != f.header:
			return errors.New("it was written by another version of the controller")
		case n == 1 || !whole:
		default:
			e, key, ok := parseLine(string(line))
			if !ok {
				return fmt.Errorf("line %d is damaged", n)
			}
			f.set(key, e)
		}
	}
	if n == 0 {
		return errors.New("it is empty")
	}
	return nil
}

// set keeps a step. A key that is done with nothing is forgotten.
func (f *File[K]) set(key string, e entry) {
	if f.entries[key] = e; e.done && e.state == (Digest{}) {
		delete(f.entries, key)
	}
}

// begun stands in place of a state.
const begun = "begun"

func line(key string, e entry) string {
	step := begun
	if e.done {
		step = hex.EncodeToString(e.state[:])
	}
	return step + " " + strconv.Quote(key) + "\n"
}

func parseLine(line string) (e entry, key string, ok bool) {
	step, quoted, _ := strings.Cut(line, " ")
	key, err := strconv.Unquote(quoted)
	if err != nil || step == begun {
		return e, key, err == nil
	}
	e.done = true
	n, err := hex.Decode(e.state[:], []byte(step)[:min(len(step), 2*len(e.state))])
	return e, key, err == nil && n == len(e.state) && len(step) == 2*n
}

// Trace is a version of an object, in the state of the keys that it concerns.
type Trace[K comparable] struct {
	Keys    []K
	Version Digest
}

// Change replaces a version of an object by the next one.
func (f *File[K]) Change(before, now Trace[K]) {
	if f == nil {
		return
	}
	f.counting.Lock()
	defer f.counting.Unlock()
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
// objects are among them.
func (f *File[K]) Due() iter.Seq[K] {
	if f == nil {
		return func(func(K) bool) {}
	}
	f.mu.Lock()
	due := maps.Clone(f.entries)
	f.mu.Unlock()
	f.counting.Lock()
	defer f.counting.Unlock()
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
	return f.step(line, entry{})
}

// Done notes that the present state of a key is done, unless that has changed since Begin. Call it
// after Change was called for every change that the work may have seen: otherwise the work may have
// seen an object that comes and goes, and the file would not tell.
func (f *File[K]) Done(key K) {
	line := lineOf(key)
	f.counting.Lock()
	state, moved := f.present[line], f.moved[line]
	delete(f.moved, line)
	f.counting.Unlock()
	if !moved {
		_ = f.step(line, entry{true, state})
	}
}

func (f *File[K]) step(key string, e entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old, known := f.entries[key]; known && old == e {
		return nil
	}
	old, known := f.entries[key]
	f.set(key, e)
	err := f.write(line(key, e))
	if err != nil && !e.done {
		delete(f.entries, key) // the next Begin of the key tries again
		if known {
			f.entries[key] = old
		}
	}
	return err
}

// write appends a line, or replaces the file. If that fails, it removes the file, whose entries
// would soon be too old. It fails if that fails too.
func (f *File[K]) write(line string) error {
	var err error
	switch {
	case f.out == nil && time.Since(f.tried) < again:
		return nil
	case f.out == nil || f.lines > 2*len(f.entries)+f.slack:
		err = f.replace()
	default:
		f.lines++
		_, err = f.out.WriteString(line)
	}
	if err == nil {
		return nil
	}
	f.warn(fmt.Errorf("%s cannot be written, and is removed until it can: %w", f.path, err))
	if f.out != nil {
		_ = f.out.Close()
	}
	f.out, f.tried = nil, time.Now()
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.tried = time.Time{}
		return fmt.Errorf("the file of handled keys can neither be written nor removed: %w", err)
	}
	return nil
}

// replace writes all entries to a new file, which takes the place of the old one at once.
func (f *File[K]) replace() error {
	var text bytes.Buffer
	text.WriteString(f.header + "\n")
	for key, e := range f.entries {
		text.WriteString(line(key, e))
	}
	path := f.path + ".new"
	_ = os.Remove(path) // of a process that was killed
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = out.Write(text.Bytes()); err == nil {
		err = os.Rename(path, f.path)
	}
	if err != nil {
		return errors.Join(err, out.Close(), os.Remove(path))
	}
	if f.out != nil {
		_ = f.out.Close()
	}
	f.out, f.lines = out, len(f.entries)
	return nil
}

// Close ends the writing. The file stays.
func (f *File[K]) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.out == nil {
		return nil
	}
	return f.out.Close()
}

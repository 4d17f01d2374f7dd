package static

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/store"
)

// File reads a file, or every file of a folder without its subfolders. Changes are seen at once if
// the system reports them (inotify), and otherwise at the end of the interval. A file that is being
// written is read once it has been left alone. Hidden files, and the leftovers of editors and
// package managers, are ignored and counted. FIFOs, sockets and devices are never opened.
//
// A path that was never there declares nothing, and is a problem until it comes: it may be
// misspelt, or a late mount. A single file that has been removed declares nothing. A folder that
// has gone away is a problem, and so is a file whose folder has gone away. Their objects stay for a
// while, as mounts come and go: see [WithGrace]. A folder has also gone away if it is on another
// mount than when it last had files, and lacks some of them. Run refuses an empty path.
//
// Before its mount a folder is empty, and says that there is nothing. If the reader may start
// first, name a folder below the mount point: that is not there before.
//
// An object that several files declare belongs to the file that declared it first, until that file
// is gone or no longer declares it. The other files stand by, and [health.Report].Problems names
// each. A file that has turned bad loses its objects to any good file that declares them, as after
// a restart, and does not take them back when it is good again. At the start, and when the holder
// goes, the shortest name is next, then the first in the alphabet: so of web.yaml and a copy of it,
// web.yaml.
//
// A file of a folder is no manifest if no object can be read from it, and it has no document, or a
// name such as README.md or kustomization.yaml. It hides nothing, and [health.Report].Warnings
// names it. A README.md that declares an object is a manifest, as for the kubelet.
func File[T store.Object](path string, decode Decode[T], options ...Option) *Reader[T] {
	f := &files[T]{path: path, settings: apply(options), decode: decode, byPath: map[string]*file[T]{}}
	return &Reader[T]{kind: "file", decodes: decode != nil, keeper: &f.keeper, run: f.run}
}

const (
	// batch is the delay between a change and the look at the files: changes seldom come alone.
	batch = 20 * time.Millisecond
	// quiet is how long a file must be left alone before it is read: half of a manifest may be a
	// valid pod.
	quiet = 100 * time.Millisecond
	// patience is how long a file may keep changing before that is a problem, and how long the
	// first state waits for it.
	patience = time.Second
	// resolution is at least that of a folder's time of change, on any kernel.
	resolution = 10 * time.Millisecond
)

// files reads a file, or a folder of files. All but keeper belongs to the goroutine of Run.
type files[T store.Object] struct {
	path     string
	settings access.Settings
	decode   Decode[T]
	keeper   access.Keeper
	set      func(State[T])
	log      logr.Logger

	byPath   map[string]*file[T]
	table    table[T]
	begun    time.Time // when Run was called
	told     bool      // a state has been set
	existed  bool
	folder   bool      // path is a folder, or was one
	place    place     // when it last had manifests
	vanished time.Time // when it went away
	moving   time.Time // since when each look has found the folder changed; zero when it is not
}

func (f *files[T]) run(ctx context.Context, set func(State[T])) error {
	if err := f.settings.Validate(); err != nil {
		return err
	}
	path, err := access.Path(f.path)
	if err != nil {
		return err
	}
	f.path, f.set, f.begun, f.log = path, set, time.Now(), f.settings.Logger(ctx)
	f.keeper.StaleAfter(f.settings.Stale())
	watch := access.NewWatch(f.log, isLeftover)
	defer watch.Close()
	for {
		f.keeper.Mode(watch.Follow(f.path, f.settings.Every))
		again := f.look()
		if !f.pause(ctx, watch, again) {
			return nil
		}
	}
}

// pause waits for a reason to look again: a change, the interval, the end of the grace time, or
// something that is being written.
func (f *files[T]) pause(ctx context.Context, watch *access.Watch, again bool) bool {
	wait := f.settings.Every
	if again {
		wait = min(wait, quiet)
	}
	if left := f.graceLeft(time.Now()); left > 0 {
		wait = min(wait, left)
	}
	period := time.NewTimer(wait)
	defer period.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-period.C:
		return true
	case <-watch.Changed():
	}
	more := time.NewTimer(batch)
	defer more.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-more.C:
	}
	watch.Drain()
	return true
}

// look reads changed files and sets the state. It returns true if a file is being written, or the
// folder has changed meanwhile.
func (f *files[T]) look() (again bool) {
	log := f.log.WithValues("path", f.path)
	found, err := f.list()
	switch {
	case errors.Is(err, fs.ErrNotExist) && !f.existed:
		log.V(2).Info("Looked at manifests", "files", 0)
		f.hand(log, access.Round{Problems: []error{access.Missing(f.path)}}, State[T]{})
		return false
	case errors.Is(err, fs.ErrNotExist) && !f.folder && f.removed():
		clear(f.byPath)
		f.vanished = time.Time{}
		f.hand(log, access.Round{Contact: true}, State[T]{})
		return false
	case errors.Is(err, fs.ErrNotExist):
		err = &goneError{f.path + " has gone away"}
	case err == nil && f.unmounted(found):
		err = &goneError{f.path + " has gone away with its mount"}
	}
	if err != nil {
		f.unreadable(log, found.at, err)
		return false
	}
	f.existed, f.vanished = true, time.Time{}
	if len(found.paths) > 0 {
		f.place = found.place
	}
	entries, leaving, again := f.read(found)
	if len(leaving) > 0 { // a new file may be the original of one that leaves, and takes over
		f.table.join(slices.SortedFunc(slices.Values(slices.Concat(entries, leaving)), byEntryPath))
	}
	now, wrong := f.table.join(entries)
	log.V(2).Info("Looked at manifests", "files", len(found.paths), "skipped", found.skipped, "objects", now.Objects.Len())
	f.keeper.Skipped(found.skipped)
	round := access.Round{
		Problems: append(found.problems, wrong...), Warnings: warnings(entries), Contact: true, Complete: complete(entries),
	}
	if !f.moving.IsZero() && time.Since(f.moving) > patience {
		round.Complete = false
		round.Problems = append(round.Problems, access.Mark("changing", fmt.Errorf("%s does not stop changing, so that files may be missed: "+
			"keep what is written all the time out of it", f.path)))
	}
	// The first state must be complete. A single bad manifest may declare anything, so an empty
	// state would be a guess.
	if !f.told && (again && time.Since(f.begun) < patience || !f.folder && len(wrong) > 0 && now.Objects.Len() == 0) {
		f.keeper.Note(log, round)
		return again
	}
	f.hand(log, round, now)
	return again
}

func (f *files[T]) hand(log logr.Logger, round access.Round, now State[T]) {
	f.told = true
	f.keeper.Hand(log, round, func() { f.set(now) })
}

// unreadable keeps the objects: for good if the path exists, and for the grace time if it has gone
// away.
func (f *files[T]) unreadable(log logr.Logger, now time.Time, err error) {
	var gone *goneError
	if errors.As(err, &gone) {
		if f.vanished.IsZero() {
			f.vanished = now
		}
		if f.graceLeft(now) > 0 {
			err = fmt.Errorf("%s: what it declared stays for %s: %w", gone.how, f.settings.Grace, fs.ErrNotExist)
		} else {
			err = fmt.Errorf("%s for longer than %s, and what it declared with it: %w", gone.how, f.settings.Grace, fs.ErrNotExist)
			clear(f.byPath)
			f.hand(log, access.Round{Problems: []error{err}}, State[T]{})
			return
		}
	}
	f.keeper.Note(log, access.Round{Problems: []error{err}})
}

// goneError says how a path has gone away.
type goneError struct{ how string }

func (e *goneError) Error() string { return e.how }

// graceLeft is the rest of the grace time of a path that has gone away, or zero.
func (f *files[T]) graceLeft(now time.Time) time.Duration {
	if f.vanished.IsZero() {
		return 0
	}
	return max(0, f.settings.Grace-now.Sub(f.vanished))
}

// listing is the content of a path.
type listing struct {
	at       time.Time
	place    place
	info     fs.FileInfo // of the path, before it was listed
	paths    []string    // of the manifests, in order
	skipped  int
	problems []error // one for each entry that is ignored as wrong
}

func (f *files[T]) list() (listing, error) {
	found := listing{at: time.Now()}
	var err error
	if found.info, err = os.Stat(f.path); err != nil {
		return found, err
	}
	f.folder = found.info.IsDir()
	found.place = placeOf(f.path, f.folder)
	var names []fs.DirEntry
	if !f.folder {
		found.paths = []string{f.path}
	} else if names, err = os.ReadDir(f.path); err != nil {
		return found, err
	}
	if after, err := os.Stat(f.path); err != nil || !os.SameFile(found.info, after) {
		return f.list() // a mount came or went: the names and the place may not be of one folder
	}
	for _, name := range names {
		path := filepath.Join(f.path, name.Name())
		if isLeftover(name.Name()) {
			found.skipped++
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			found.problems = append(found.problems,
				access.Mark("refused", fmt.Errorf("%s is a folder: manifests are read from one folder, not from those in it", path)))
			continue
		}
		found.paths = append(found.paths, path)
	}
	return found, nil
}

package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
)

// File adds the pods declared by a manifest, or by every manifest of a folder; subfolders are not read. Changes are seen
// at once where the system reports them (inotify), and at the latest when the period is over; a file that is being
// written is waited for. Files whose name begins with a dot, and editors' and package managers' leftovers, are passed
// over and counted; FIFOs, sockets and devices are never opened.
//
// A path that was never there declares nothing, nor does a file that has been removed. A path that has gone away with the
// folder around it, or is a folder, is a problem, and its pods stay for a while, as mounts come and go: see [Grace].
func File(path string, options ...SourceOption) Option {
	return With(&fileSource{path: path, options: applySource(options)})
}

const (
	// batch is how long after a change the files are looked at: changes seldom come alone.
	batch = 20 * time.Millisecond
	// quiet is how long a file must have been left alone before it is read: what is half-written may be a pod too.
	quiet = 100 * time.Millisecond
	// patience is how long a file may go on changing before that is a problem, and how long the first state waits for it.
	patience = time.Second
)

type fileSource struct {
	path    string
	options sourceOptions
	keeper  keeper

	// Of the goroutine of Run.
	decode   Decode
	files    map[string]*file
	begun    time.Time // when Run was called
	set      bool      // a state has been set
	existed  bool
	folder   bool      // what path is, or was
	vanished time.Time // when it went away
}

func (f *fileSource) Name() string { return FileSource }

func (f *fileSource) Report() Report { return f.keeper.read() }

func (f *fileSource) Run(ctx context.Context, sink *Sink) error {
	if err := f.options.validate(); err != nil {
		return err
	}
	path, err := filepath.Abs(f.path)
	if err != nil {
		return fmt.Errorf("manifest path %q: %w", f.path, err)
	}
	f.path = path
	f.keeper.staleAfter(f.options.stale())
	if sink.likeKubelet {
		return newKubeletFile(f, sink).run(ctx)
	}
	f.decode = decoder(f.options, sink.Node(), FileSource)
	f.files = map[string]*file{}
	f.begun = time.Now()
	watcher := newFileWatch(sink.Log())
	defer watcher.close()
	for {
		f.keeper.mode(watcher.follow(f.path, f.options.every))
		again := f.look(sink)
		if !f.pause(ctx, watcher, again) {
			return nil
		}
	}
}

// pause waits for a reason to look again: a change, the period, the end of the grace time, or a file that was not quiet.
func (f *fileSource) pause(ctx context.Context, watcher *fileWatch, again bool) bool {
	wait := f.options.every
	if again {
		wait = min(wait, quiet)
	}
	if left := f.graceLeft(); left > 0 {
		wait = min(wait, left)
	}
	period := time.NewTimer(wait)
	defer period.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-period.C:
		return true
	case <-watcher.changed():
	}
	more := time.NewTimer(batch)
	defer more.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-more.C:
	}
	watcher.drain()
	return true
}

// look reads what has changed and sets the state; again means that a file is being written.
func (f *fileSource) look(sink *Sink) (again bool) {
	log := sink.Log().WithValues("path", f.path)
	found, err := f.list()
	switch {
	case errors.Is(err, fs.ErrNotExist) && (!f.existed || !f.folder && f.removed()):
		clear(f.files)
		f.vanished = time.Time{}
		f.keeper.round(log, nil, true)
		f.hand(sink, Pods{})
		return false
	case err != nil:
		f.unreadable(sink, log, err)
		return false
	}
	f.existed, f.vanished = true, time.Time{}
	entries, again := f.read(found.paths)
	pods, wrong := table(entries)
	log.V(2).Info("Looked at manifests", "files", len(found.paths), "skipped", found.skipped, "pods", pods.Len())
	f.keeper.skipped(found.skipped)
	f.keeper.round(log, append(found.problems, wrong...), true)
	switch {
	case f.set:
	case again && time.Since(f.begun) < patience:
		return again // the first state is to be complete
	case !f.folder && len(wrong) > 0 && pods.Len() == 0:
		return again // nobody knows what the one manifest declares: to say "nothing" would be a lie
	}
	f.hand(sink, pods)
	return again
}

func (f *fileSource) hand(sink *Sink, pods Pods) {
	f.set = true
	sink.Set(pods)
}

// removed reports whether the path, and nothing around it, is gone: what is left of a removed file, but not of one whose
// mount or link target is away.
func (f *fileSource) removed() bool {
	_, err := os.Lstat(f.path)
	info, around := os.Stat(filepath.Dir(f.path))
	return errors.Is(err, fs.ErrNotExist) && around == nil && info.IsDir()
}

// unreadable keeps the pods: for good where the path is there, and for the grace time where it has gone away.
func (f *fileSource) unreadable(sink *Sink, log logr.Logger, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		if f.vanished.IsZero() {
			f.vanished = time.Now()
		}
		if f.graceLeft() > 0 {
			err = fmt.Errorf("%s has gone away: its pods stay for %s: %w", f.path, f.options.grace, fs.ErrNotExist)
		} else {
			err = fmt.Errorf("%s has gone away for longer than %s, and its pods with it: %w", f.path, f.options.grace, fs.ErrNotExist)
			clear(f.files)
			f.hand(sink, Pods{})
		}
	}
	f.keeper.round(log, []error{err}, false)
}

// graceLeft is for how long the pods of a path that has gone away stay; zero where none of it is left, or none runs.
func (f *fileSource) graceLeft() time.Duration {
	if f.vanished.IsZero() {
		return 0
	}
	return max(0, f.options.grace-time.Since(f.vanished))
}

// listing is what a path holds.
type listing struct {
	paths    []string // of the manifests, in order
	skipped  int
	problems []error // what is passed over because it is wrong
}

func (f *fileSource) list() (listing, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return listing{}, err
	}
	if f.folder = info.IsDir(); !f.folder {
		return listing{paths: []string{f.path}}, nil
	}
	names, err := os.ReadDir(f.path)
	if err != nil {
		return listing{}, err
	}
	var found listing
	for _, name := range names {
		path := filepath.Join(f.path, name.Name())
		if isLeftover(name.Name()) {
			found.skipped++
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			found.problems = append(found.problems,
				fmt.Errorf("%s is a folder: manifests are read from one folder, not from those in it", path))
			continue
		}
		found.paths = append(found.paths, path)
	}
	return found, nil
}

// isLeftover reports whether a name is that of a hidden file, or of what editors and package managers leave behind.
func isLeftover(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") {
		return true
	}
	switch filepath.Ext(name) {
	case ".bak", ".old", ".orig", ".rej", ".save", ".swp", ".swo", ".swx", ".tmp", ".part",
		".rpmnew", ".rpmsave", ".rpmorig", ".dpkg-new", ".dpkg-old", ".dpkg-dist", ".dpkg-tmp", ".ucf-dist", ".ucf-new", ".ucf-old":
		return true
	}
	return false
}

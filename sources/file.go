package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/tributary-go/tributary/sources/manifest"
)

// File adds the pods declared by a manifest, or by every manifest of a folder; subfolders are not read. Changes are seen
// at once where the system reports them (inotify), and at the latest when the period is over. Files whose name begins
// with a dot, and editors' and package managers' leftovers, are passed over; FIFOs, sockets and devices are never opened.
// A path that was never there declares nothing. A file that is gone declares nothing; a folder that has gone away is a
// problem, and its pods stay for a minute, as mounts come and go.
func File(path string, options ...SourceOption) Option {
	return With(&fileSource{path: path, options: applySource(options)})
}

const (
	// vanishedGrace is how long the pods of a path that has gone away stay.
	vanishedGrace = time.Minute
	// settle is how long after a change the files are read: writers seldom write once.
	settle = 20 * time.Millisecond
	// unsettled is when to look again at a file that changed while it was read.
	unsettled = 100 * time.Millisecond
)

// errUnsettled: the file changed while it was read.
var errUnsettled = errors.New("the file is being written: looking again in a moment")

type fileSource struct {
	path    string
	options sourceOptions
	keeper  keeper

	// Of the goroutine of Run.
	decoder  manifest.Decoder
	files    map[string]*file
	existed  bool
	folder   bool      // what path is, or was
	vanished time.Time // when it went away
}

// file is an entry with what the file looked like when it was read.
type file struct {
	entry
	info    fs.FileInfo
	settled bool
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
	f.decoder = manifest.Decoder{Node: sink.Node(), Source: FileSource}
	f.files = map[string]*file{}
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

// pause waits for a reason to look again: a change, the period, or a file that was not settled.
func (f *fileSource) pause(ctx context.Context, watcher *fileWatch, again bool) bool {
	wait := f.options.every
	if again {
		wait = min(wait, unsettled)
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
	quiet := time.NewTimer(settle)
	defer quiet.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-quiet.C:
	}
	watcher.drain()
	return true
}

// look reads what has changed and sets the state; again means that a file was not settled.
func (f *fileSource) look(sink *Sink) (again bool) {
	log := sink.Log().WithValues("path", f.path)
	paths, problems, err := f.list()
	switch {
	case errors.Is(err, fs.ErrNotExist) && (!f.existed || !f.folder):
		clear(f.files)
		f.keeper.round(log, nil, true)
		sink.Set(Pods{})
		return false
	case err != nil:
		return f.unreadable(sink, log, err)
	}
	f.existed, f.vanished = true, time.Time{}
	entries, again := f.read(paths)
	pods, wrong := table(entries)
	log.V(2).Info("Looked at manifests", "files", len(paths), "pods", pods.Len())
	f.keeper.round(log, append(problems, wrong...), true)
	sink.Set(pods)
	return again
}

// unreadable keeps the pods, for a while where the path has gone away and for good where it is there.
func (f *fileSource) unreadable(sink *Sink, log logr.Logger, err error) (again bool) {
	if errors.Is(err, fs.ErrNotExist) {
		if f.vanished.IsZero() {
			f.vanished = time.Now()
		}
		if time.Since(f.vanished) >= vanishedGrace {
			clear(f.files)
			sink.Set(Pods{})
		}
		err = fmt.Errorf("%s has gone away: its pods stay for %s: %w", f.path, vanishedGrace, fs.ErrNotExist)
	}
	f.keeper.round(log, []error{err}, false)
	return false
}

// list returns the paths of the manifests, in order, and what is passed over with a problem.
func (f *fileSource) list() (paths []string, problems []error, err error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, nil, err
	}
	if f.folder = info.IsDir(); !f.folder {
		return []string{f.path}, nil, nil
	}
	names, err := os.ReadDir(f.path)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		path := filepath.Join(f.path, name.Name())
		if isLeftover(name.Name()) {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			problems = append(problems, fmt.Errorf("%s is a folder: manifests are read from one folder, not from those in it", path))
			continue
		}
		paths = append(paths, path)
	}
	return paths, problems, nil
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

// read brings the files up to date and forgets those that are gone.
func (f *fileSource) read(paths []string) (entries []*entry, again bool) {
	now := make(map[string]*file, len(paths))
	for _, path := range paths {
		one := f.files[path]
		if one == nil {
			one = &file{entry: entry{path: path}}
		}
		again = f.refresh(one) || again
		now[path] = one
		entries = append(entries, &one.entry)
	}
	f.files = now
	return entries, again
}

// refresh reads one file if it does not look as it did; again means that it was not settled.
func (f *fileSource) refresh(one *file) (again bool) {
	info, err := os.Stat(one.path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file (%s)", one.path, info.Mode().Type()) // to open a FIFO would block
	}
	if err != nil {
		one.settled = false
		one.fail(err)
		return false
	}
	if one.settled && sameFile(one.info, info) {
		return false
	}
	data, err := readBounded(one.path)
	if err == nil {
		if after, statErr := os.Stat(one.path); statErr != nil || !sameFile(info, after) {
			err = fmt.Errorf("%s: %w", one.path, errUnsettled)
		}
	}
	one.info, one.settled = info, err == nil
	if err != nil {
		one.fail(err)
		return errors.Is(err, errUnsettled)
	}
	one.take(f.decoder.Decode(one.path, data))
	return false
}

// sameFile reports whether a file looks untouched: the same inode, size and time of change.
func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// readBounded reads a regular file of less than the manifest limit. What is there may have changed since it was looked
// at, so it is opened in a way that does not wait for the other end of a FIFO.
func readBounded(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, errUnsettled)
	}
	data, err := io.ReadAll(io.LimitReader(file, manifest.MaxSize))
	if err == nil && len(data) >= manifest.MaxSize {
		err = fmt.Errorf("%s: a manifest of %d MiB or more is not read", path, manifest.MaxSize>>20)
	}
	return data, err
}

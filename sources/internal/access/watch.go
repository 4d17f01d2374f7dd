package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// Watch hints that something may have changed near a path. It is only a hint: each look compares
// the files, and the interval finds the changes without an event.
type Watch struct {
	log     logr.Logger
	skip    func(name string) bool
	watcher *fsnotify.Watcher      // nil while the system has none left
	watched map[string]os.FileInfo // folders, as they were when their watch began
	places  atomic.Pointer[places]
	hint    chan struct{}
	ended   chan struct{}
}

// NewWatch makes a watch of nothing. A link is not followed if skip holds for its name.
func NewWatch(log logr.Logger, skip func(name string) bool) *Watch {
	return &Watch{log: log, skip: skip, watched: map[string]os.FileInfo{}, hint: make(chan struct{}, 1), ended: make(chan struct{})}
}

// begin takes a watcher from the system. If there is none left, the next look tries again.
func (w *Watch) begin() (err error) {
	if w.watcher != nil {
		return nil
	}
	if w.watcher, err = fsnotify.NewWatcher(); err != nil {
		w.watcher = nil
		return err
	}
	go w.forward()
	return nil
}

// forward turns events, and errors such as an overflow, into one pending hint.
func (w *Watch) forward() {
	defer close(w.ended)
	for {
		select {
		case event, open := <-w.watcher.Events:
			if !open {
				return
			}
			if !w.places.Load().concerns(event.Name) {
				continue
			}
		case err, open := <-w.watcher.Errors:
			if !open {
				return
			}
			w.log.V(2).Info("File events were lost: looking at everything", "error", err.Error())
		}
		select {
		case w.hint <- struct{}{}:
		default:
		}
	}
}

// Changed receives after changes.
func (w *Watch) Changed() <-chan struct{} { return w.hint }

// Drain empties Changed.
func (w *Watch) Drain() {
	select {
	case <-w.hint:
	default:
	}
}

// Close ends the watch and waits for its end.
func (w *Watch) Close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
		<-w.ended
	}
}

// Follow watches the folders that decide where path leads now, and returns how changes are noticed.
// It is called before each look, since folders are made, switched and removed, and limits raised.
func (w *Watch) Follow(path string, every time.Duration) (mode string) {
	if err := w.begin(); err != nil {
		return Polls(every, err)
	}
	there := placesOf(path, w.skip)
	w.places.Store(there)
	// An inode number is used again at once, so it does not tell a folder from a new one in its
	// place. The list of the watcher does: a watch ends with its folder.
	alive := w.watcher.WatchList()
	for folder, info := range w.watched {
		now, wanted := there.folders[folder]
		if !wanted || !os.SameFile(now, info) || !slices.Contains(alive, folder) {
			_ = w.watcher.Remove(folder) // it may be gone already, and its watch with it
			delete(w.watched, folder)
		}
	}
	var failed error
	for folder, info := range there.folders {
		if _, ok := w.watched[folder]; ok {
			continue
		}
		if err := w.watcher.Add(folder); err != nil {
			failed = fmt.Errorf("%s cannot be watched: %w", folder, err)
			continue
		}
		w.watched[folder] = info
	}
	switch {
	case failed == nil:
		return FileEvents()
	case len(w.watched) == 0:
		return Polls(every, failed)
	}
	return FileEvents() + " and " + Polls(every, failed)
}

// Polls is the mode of a reader that looks at each interval, with the reason why it has no events.
func Polls(every time.Duration, err error) string {
	mode := fmt.Sprintf("poll every %s: %v", every, err)
	if runtime.GOOS != "linux" {
		return mode
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		mode += " (the limit fs.inotify.max_user_watches is reached)"
	case errors.Is(err, syscall.EMFILE):
		mode += " (the limit fs.inotify.max_user_instances, or that of open files, is reached)"
	}
	return mode
}

// FileEvents is the system's name for its file events.
func FileEvents() string {
	if runtime.GOOS == "linux" {
		return "inotify"
	}
	return "file events"
}

// maxLinks bounds the symbolic links on the way to one file; it is Linux's own bound.
const maxLinks = 40

// places are the folders and names to watch for changes. In most folders one name alone matters,
// and the folder may be busy.
type places struct {
	folders map[string]os.FileInfo // to be watched, without links in their paths
	names   map[string]bool        // the paths in those folders to watch
	whole   string                 // the folder in which every name matters
}

// placesOf finds the places that decide where path leads: every folder and link on the way to it.
// If path is a folder, the way from each link in it counts too.
func placesOf(path string, skip func(string) bool) *places {
	p := &places{folders: map[string]os.FileInfo{}, names: map[string]bool{}}
	end, there := p.walk(path)
	if !there || !p.add(end) {
		return p
	}
	p.whole = end
	names, _ := os.ReadDir(end)
	for _, name := range names {
		if name.Type()&os.ModeSymlink != 0 && !skip(name.Name()) {
			p.walk(filepath.Join(end, name.Name()))
		}
	}
	return p
}

// walk follows path one name at a time, as the system does, and notes each name. It returns the end
// of the path. If the path does not exist, its last existing folder will show its coming.
func (p *places) walk(path string) (end string, there bool) {
	root := func(path string) string { return filepath.VolumeName(path) + string(filepath.Separator) }
	at := root(path)
	rest := parts(path)
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if !p.add(at) {
			return "", false
		}
		p.names[next] = true
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", false
		}
		if filepath.IsAbs(target) {
			at = root(target)
		}
		rest = append(parts(target), rest...)
	}
	return at, true
}

// parts are the names in a path. They include "..": its meaning depends on the links before it.
func parts(path string) (names []string) {
	path = filepath.ToSlash(path[len(filepath.VolumeName(path)):])
	for _, name := range strings.Split(path, "/") {
		if name != "" && name != "." {
			names = append(names, name)
		}
	}
	return names
}

func (p *places) add(folder string) bool {
	if _, ok := p.folders[folder]; ok {
		return true
	}
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() {
		return false
	}
	p.folders[folder] = info
	return true
}

func (p *places) concerns(path string) bool {
	return p != nil && (p.names[path] || path == p.whole || filepath.Dir(path) == p.whole)
}

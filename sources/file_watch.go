package sources

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
)

// fileWatch says that something may have changed where manifests are. What it says is a hint: the files are compared in
// any case, and the period looks at what no event told of.
type fileWatch struct {
	log     logr.Logger
	watcher *fsnotify.Watcher
	err     error                  // why there is no watcher
	watched map[string]os.FileInfo // folders, as they were when their watch began
	places  atomic.Pointer[places]
	hint    chan struct{}
	ended   chan struct{}
}

func newFileWatch(log logr.Logger) *fileWatch {
	w := &fileWatch{log: log, watched: map[string]os.FileInfo{}, hint: make(chan struct{}, 1), ended: make(chan struct{})}
	if w.watcher, w.err = fsnotify.NewWatcher(); w.err != nil {
		close(w.ended)
		return w
	}
	go w.forward()
	return w
}

// forward turns events, and errors such as an overflow, into one hint that waits.
func (w *fileWatch) forward() {
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

func (w *fileWatch) changed() <-chan struct{} { return w.hint }

func (w *fileWatch) drain() {
	select {
	case <-w.hint:
	default:
	}
}

func (w *fileWatch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
	<-w.ended
}

// follow watches the folders that decide what is at path, as things are now, and returns how changes are noticed. It is
// called before each look, since folders are made, switched and removed.
func (w *fileWatch) follow(path string, every time.Duration) (mode string) {
	if w.watcher == nil {
		return fmt.Sprintf("poll every %s: %v", every, w.err)
	}
	there := placesOf(path)
	w.places.Store(there)
	// The inode alone does not tell a folder from one that was made anew in its place: the number is used again at once.
	// The list of the watcher does, as a watch ends with its folder.
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
	if failed != nil {
		return fmt.Sprintf("%s and poll every %s: %v", fileEvents(), every, failed)
	}
	return fileEvents()
}

// fileEvents is what the system's file events are called.
func fileEvents() string {
	if runtime.GOOS == "linux" {
		return "inotify"
	}
	return "file events"
}

// maxLinks bounds how many symbolic links are followed on the way to one file; it is Linux's own bound.
const maxLinks = 40

// places are where changes matter. Most folders are watched for one name in them alone, and may be busy ones.
type places struct {
	folders map[string]os.FileInfo // to be watched, without links in their paths
	names   map[string]bool        // the paths, in those folders, whose coming, going and changing matters
	whole   string                 // the folder in which every name does
}

// placesOf finds the places that decide what path leads to: every folder and link on the way to it, and on the way from
// each link in it if it is a folder.
func placesOf(path string) *places {
	p := &places{folders: map[string]os.FileInfo{}, names: map[string]bool{}}
	end, there := p.walk(path)
	if !there || !p.add(end) {
		return p
	}
	p.whole = end
	names, _ := os.ReadDir(end)
	for _, name := range names {
		if name.Type()&os.ModeSymlink != 0 && !isLeftover(name.Name()) {
			p.walk(filepath.Join(end, name.Name()))
		}
	}
	return p
}

// walk goes to path one name at a time, as the system does, and notes each. It returns where path leads to in the end. Of
// a path that is not there, the last folder that is will show its coming.
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

// parts are the names that a path is made of, ".." among them: what that means depends on the links before it.
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

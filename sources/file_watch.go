package sources

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
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

// places are where changes matter. A folder that is watched for one name in it, as a parent is, may be a busy one.
type places struct {
	folders map[string]os.FileInfo // to be watched
	names   map[string]bool        // the paths whose coming and going matters
	whole   string                 // the folder in which every name does
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
			if event.Op == fsnotify.Chmod || !w.places.Load().concerns(event.Name) {
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
	var failed error
	there := placesOf(path)
	w.places.Store(there)
	want := there.folders
	for folder := range maps.Keys(w.watched) {
		if now, ok := want[folder]; !ok || !os.SameFile(now, w.watched[folder]) {
			_ = w.watcher.Remove(folder) // it may be gone already, and its watch with it
			delete(w.watched, folder)
		}
	}
	for folder, info := range want {
		if _, ok := w.watched[folder]; ok {
			continue
		}
		if err := w.watcher.Add(folder); err != nil {
			failed = err
			continue
		}
		w.watched[folder] = info
	}
	if failed != nil {
		return fmt.Sprintf("inotify and poll every %s: %v", every, failed)
	}
	return "inotify"
}

// maxLinks bounds how far a chain of symbolic links is followed.
const maxLinks = 40

// placesOf finds the places that decide what path leads to: path itself if it is a folder, the folder that holds its
// name, and the same for each link on the way, from path and from the files in it.
func placesOf(path string) *places {
	p := &places{folders: map[string]os.FileInfo{}, names: map[string]bool{}}
	p.chain(path)
	if !p.add(path) {
		return p
	}
	p.whole = path
	names, _ := os.ReadDir(path)
	for _, name := range names {
		if name.Type()&os.ModeSymlink != 0 {
			p.chain(filepath.Join(path, name.Name()))
		}
	}
	return p
}

// chain follows path through links. Of a path that is not there, the nearest folder that is will show its coming.
func (p *places) chain(path string) {
	for range maxLinks {
		p.names[path] = true
		for folder := filepath.Dir(path); !p.add(folder) && folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
			p.names[folder] = true
		}
		target, err := os.Readlink(path)
		if err != nil {
			return
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
}

func (p *places) add(folder string) bool {
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

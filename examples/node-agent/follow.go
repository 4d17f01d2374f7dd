package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
)

const (
	// lookEvery is how often everything is looked at, whatever inotify says.
	lookEvery = 10 * time.Second
	// turn is how many bytes of a busy log are read before the others have theirs.
	turn = 256 << 10
	// askEvery is how often the look-ups are asked for a workload that lines wait for.
	askEvery = 20 * time.Millisecond
)

// follower follows the logs below a root like /var/log/pods. One goroutine does all of it.
type follower struct {
	root      string
	pods      *sources.Sources
	who       *lookup.Lookup
	joiner    *joiner
	log       logr.Logger
	patience  time.Duration // for the workload of a new pod
	positions positions
	restored  map[string]position // of an earlier run, by folder

	watcher *fsnotify.Watcher
	folders map[string]*podFolder // by path
	dirty   map[*containerLog]bool
}

// podFolder is <namespace>_<name>_<uid>, and its pod as it was last seen.
type podFolder struct {
	path       string
	uid        types.UID // by which the pod is found
	pod        *lookup.Pod
	containers map[string]*containerLog // by path
	// waits is until when lines wait for the workload of the pod. It is zero once that is known, or
	// once the patience has ended.
	waits time.Time
}

// containerLog is the log of one container.
type containerLog struct {
	tail
	folder *podFolder
}

// run follows logs until ctx ends, which is no error. changed says that pods have changed.
func (f *follower) run(ctx context.Context, changed <-chan struct{}) (err error) {
	if f.watcher, err = fsnotify.NewWatcher(); err != nil {
		return err
	}
	defer f.watcher.Close()
	if err := f.watcher.Add(f.root); err != nil {
		return fmt.Errorf("the folder %s cannot be watched: %w", f.root, err)
	}
	f.folders, f.dirty = map[string]*podFolder{}, map[*containerLog]bool{}
	if f.restored, err = f.positions.load(); err != nil {
		f.log.Error(err, "Problem")
	}
	looks := time.NewTicker(lookEvery)
	defer looks.Stop()
	turns := time.NewTimer(0)
	defer turns.Stop()
	f.lookAtAll()
	for {
		select {
		case <-ctx.Done():
			f.end()
			return f.joiner.failed
		case event := <-f.watcher.Events:
			f.noticed(event.Name)
		case <-f.watcher.Errors: // events were lost
			f.lookAtAll()
		case <-changed:
			f.lookAtAll()
		case <-looks.C:
			f.lookAtAll()
			f.save()
		case <-turns.C:
		}
		turns.Reset(f.readDirty())
		if f.joiner.failed != nil {
			return f.joiner.failed
		}
	}
}

// noticed marks the folder of a pod, or the log of a container, that a path belongs to.
func (f *follower) noticed(path string) {
	relative, err := filepath.Rel(f.root, path)
	if err != nil || relative == "." {
		return
	}
	parts := strings.Split(relative, string(filepath.Separator))
	folder := f.folders[filepath.Join(f.root, parts[0])]
	if folder == nil || len(parts) < 3 {
		f.look(filepath.Join(f.root, parts[0]))
		return
	}
	if c := folder.containers[filepath.Dir(path)]; c != nil {
		f.dirty[c] = true
	}
}

func (f *follower) lookAtAll() {
	entries, err := os.ReadDir(f.root)
	if err != nil {
		f.failed(f.root, err)
		return
	}
	for path := range f.folders { // those that are gone too
		f.look(path)
	}
	for _, entry := range entries {
		if path := filepath.Join(f.root, entry.Name()); f.folders[path] == nil {
			f.look(path)
		}
	}
}

// look starts and stops the tails of one pod. A pod is followed from the time that any source has
// it until all of them have dropped it, and for the time of lookup.KeepEnded.
func (f *follower) look(path string) {
	folder := f.folders[path]
	if folder == nil {
		if folder = f.find(path); folder == nil {
			return
		}
		f.folders[path] = folder
	}
	pod := f.who.ByUID(folder.uid)
	if pod == nil {
		f.stop(folder)
		return
	}
	if folder.pod == nil {
		folder.waits = time.Now().Add(f.patience)
	}
	folder.pod = pod
	_ = f.watcher.Add(path) // without it, the folder is looked at from time to time
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		f.stop(folder)
		return
	}
	f.failed(path, err)
	for _, entry := range entries {
		log := filepath.Join(path, entry.Name())
		c := folder.containers[log]
		if c == nil && entry.IsDir() {
			c = &containerLog{tail: tail{folder: log, at: f.restored[log]}, folder: folder}
			delete(f.restored, log)
			_ = f.watcher.Add(log)
			folder.containers[log] = c
			f.joiner.counts.tails.Inc()
		}
		if c != nil {
			f.dirty[c] = true
		}
	}
}

// find finds the pod of a folder. Without its mirror, a static pod has another UID for the kubelet
// than for us, so it is found by its name.
func (f *follower) find(path string) *podFolder {
	parts := strings.Split(filepath.Base(path), "_")
	if len(parts) != 3 {
		return nil
	}
	folder := &podFolder{path: path, uid: types.UID(parts[2]), containers: map[string]*containerLog{}}
	if f.who.ByUID(folder.uid) != nil {
		return folder
	}
	for _, p := range f.pods.Merged() {
		if p.PodFrom == sources.FileSource && p.Pod.Namespace == parts[0] && p.Pod.Name == parts[1] {
			folder.uid = p.Pod.UID
			return folder
		}
	}
	return nil
}

// readDirty gives each log that has changed its turn, and returns how long the next turns may wait.
// A log stays as it is while its lines wait for the workload of their pod.
func (f *follower) readDirty() (next time.Duration) {
	next = lookEvery
	for c := range f.dirty {
		switch {
		case f.waits(c.folder):
			next = min(next, askEvery)
		case f.readTurn(c):
			next = 0
		default:
			delete(f.dirty, c)
		}
	}
	return next
}

// waits reports whether lines of a pod still wait for its workload.
func (f *follower) waits(folder *podFolder) bool {
	if folder.waits.IsZero() {
		return false
	}
	if _, known := f.who.Owner(folder.pod.Pod); known || time.Now().After(folder.waits) {
		folder.waits = time.Time{}
		return false
	}
	return true
}

// readTurn tells new lines of a log, and reports whether there are more.
func (f *follower) readTurn(c *containerLog) (more bool) {
	if pod := f.who.ByUID(c.folder.uid); pod != nil {
		c.folder.pod = pod // with its labels of now
	}
	name := filepath.Base(c.tail.folder)
	more, err := c.read(turn, func(line []byte) { f.joiner.tell(c.folder.pod, name, line) })
	f.failed(c.tail.folder, err)
	return more && err == nil && f.joiner.failed == nil
}

// stop ends the tails of a pod, once they have told everything.
func (f *follower) stop(folder *podFolder) {
	for path, c := range folder.containers {
		for f.readTurn(c) {
		}
		c.close()
		delete(f.dirty, c)
		_ = f.watcher.Remove(path) // it may be gone
		f.joiner.counts.tails.Dec()
	}
	_ = f.watcher.Remove(folder.path)
	delete(f.folders, folder.path)
}

// end tells the lines written so far, and saves the positions.
func (f *follower) end() {
	f.save()
	for _, folder := range f.folders {
		for _, c := range folder.containers {
			f.readTurn(c)
			defer c.close()
		}
	}
	f.save()
}

// save keeps the positions of all logs that there are.
func (f *follower) save() {
	all := map[string]position{}
	for path, at := range f.restored {
		if _, err := os.Stat(path); err == nil {
			all[path] = at
		}
	}
	for _, folder := range f.folders {
		for path, c := range folder.containers {
			if c.at.Inode != 0 {
				all[path] = c.at
			}
		}
	}
	if err := f.positions.save(all); err != nil {
		f.log.Error(err, "Problem")
	}
}

// failed counts and logs an error of a file. A file that has gone is none.
func (f *follower) failed(path string, err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	f.joiner.counts.failures.Inc()
	f.log.Error(err, "Problem", "path", path)
}

package static

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/store"
)

// file is the entry of a file, with the state of the file when it was read.
type file[T store.Object] struct {
	entry[T]
	info    fs.FileInfo
	settled bool // the state in info has been read
	// of the bytes that the entry was made of; zero if the last reading failed
	sum     [sha256.Size]byte
	waiting time.Time // since when it has been found being written; zero when it is not
	gone    time.Time // since when it has not been there; zero when it is
}

// fail keeps all objects, because the file could not be read.
func (f *file[T]) fail(err error) {
	f.sum = [sha256.Size]byte{}
	f.entry.fail(err)
}

// read brings the files up to date and forgets files that are gone. It returns true if a file is
// being written, or the folder changed meanwhile. That file, or one that the list has missed, may
// be about to declare the objects of a file that is gone, as in a copy and a removal. So the holder
// of an object is not forgotten until all is quiet or patience is over: a third file that declares
// the object would take it over before the copy is read. Such files are leaving when they are
// forgotten: the new one was there before they went.
func (f *files[T]) read(found listing) (entries, leaving []*entry[T], again bool) {
	now := make(map[string]*file[T], len(found.paths))
	for _, path := range found.paths {
		one := f.byPath[path]
		if one == nil {
			one = &file[T]{entry: entry[T]{path: path, found: f.folder}}
		}
		busy, there := f.refresh(one)
		again = again || busy || !there
		if !there {
			continue
		}
		one.gone = time.Time{}
		now[path] = one
		entries = append(entries, &one.entry)
	}
	lasting := patience
	if f.moves(found) {
		again, lasting = true, max(patience, f.settings.Grace)
	}
	for path, one := range f.byPath {
		switch {
		case now[path] != nil:
		case again && f.table.holds(path) && one.lingers(lasting):
			now[path] = one
			entries = append(entries, &one.entry)
		case !one.gone.IsZero():
			leaving = append(leaving, &one.entry)
		}
	}
	slices.SortFunc(entries, byEntryPath)
	f.byPath = now
	return entries, leaving, again
}

// moves reports whether the folder is another one since it was listed, or may have changed. To list
// and to read takes many steps: what is renamed between them may be found by neither name. A second
// change within the resolution of the folder's times would not show.
func (f *files[T]) moves(found listing) bool {
	if !f.folder {
		return false
	}
	after, err := os.Stat(f.path)
	age := found.at.Sub(found.info.ModTime())
	if err == nil && sameFile(found.info, after) && (age < 0 || age >= resolution) {
		f.moving = time.Time{}
		return false
	}
	if f.moving.IsZero() {
		f.moving = found.at
	}
	return true
}

func byEntryPath[T store.Object](a, b *entry[T]) int { return strings.Compare(a.path, b.path) }

// lingers reports whether the file has been gone only for a short time.
func (f *file[T]) lingers(lasting time.Duration) bool {
	if f.gone.IsZero() {
		f.gone = time.Now()
	}
	f.settled, f.waiting = false, time.Time{}
	return time.Since(f.gone) < lasting
}

// refresh reads a file if it looks different. busy means that it is being written; it is not there
// if it was removed after it was listed.
func (f *files[T]) refresh(one *file[T]) (busy, there bool) {
	info, err := os.Stat(one.path)
	if err == nil && !info.Mode().IsRegular() {
		// to open a FIFO would block
		err = access.NotRegular(one.path, info)
	}
	switch {
	case err != nil:
		one.settled, one.waiting = false, time.Time{}
		if _, gone := os.Lstat(one.path); errors.Is(gone, fs.ErrNotExist) {
			return false, false
		}
		one.fail(err)
		return false, true
	case one.settled && tellsChanges && sameFile(one.info, info):
		return false, true
	case isYoung(info):
		return one.wait(), true
	}
	data, err := access.ReadFile(one.path)
	after, statErr := os.Stat(one.path)
	if statErr != nil || !sameFile(info, after) {
		return one.wait(), true
	}
	one.info, one.settled, one.waiting = info, err == nil, time.Time{}
	if err != nil {
		one.fail(err)
		return false, true
	}
	// A file that only looks different is not decoded again: its objects stay the same ones.
	if sum := sha256.Sum256(data); sum != one.sum {
		one.sum = sum
		one.take(f.decode(one.path, data))
	}
	return false, true
}

// wait leaves a file that is being written as it was, for a later look.
func (f *file[T]) wait() (busy bool) {
	f.settled = false
	if f.waiting.IsZero() {
		f.waiting = time.Now()
	}
	if time.Since(f.waiting) > patience {
		f.fail(access.Mark("changing", fmt.Errorf("%s does not stop changing: it is read when it has been left alone for %s", f.path, quiet)))
	}
	return true
}

// isYoung reports whether a file was written just now. A second write within the resolution of its
// time of change would not show. A time in the future says nothing.
func isYoung(info fs.FileInfo) bool {
	age := time.Since(info.ModTime())
	return age >= 0 && age < quiet
}

// sameFile reports whether a file looks untouched: the same inode, size and times.
func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && changed(a).Equal(changed(b))
}

package static

import (
	"os"
	"path/filepath"
)

// place is where a path led. A mount below the path changes what is there without any trace in the
// folder itself: an unmounted folder is an empty one.
type place struct {
	path  string // without links
	mount mount
}

// mount is the mount that a folder is on.
type mount struct {
	device uint64
	id     string // of the kernel; empty if it is not known
}

// placeOf is the place of a folder, or of a file in it.
func placeOf(path string, folder bool) place {
	if !folder {
		path = filepath.Dir(path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return place{}
	}
	return place{real, mountOf(path)}
}

// remounted reports whether the same folder is on another mount than before. A link that was
// switched leads to another folder.
func (p place) remounted(before place) bool {
	now := p.mount
	if p.path == "" || p.path != before.path {
		return false
	}
	return now.device != before.mount.device || now.id != before.mount.id && now.id != "" && before.mount.id != ""
}

// unmounted reports whether the folder is on another mount than when it last had manifests, and
// lacks some of them. If other manifests are there, the new mount is accepted after the grace.
func (f *files[T]) unmounted(found listing) bool {
	if !found.place.remounted(f.place) {
		return false
	}
	if len(found.paths) == 0 {
		return true
	}
	there := make(map[string]bool, len(found.paths))
	for _, path := range found.paths {
		there[path] = true
	}
	for path, one := range f.byPath {
		if !there[path] && len(one.objects) > 0 {
			return f.graceLeft(found.at) > 0 || f.vanished.IsZero() && f.settings.Grace > 0
		}
	}
	return false
}

// removed reports whether the path alone is gone. If its mount or link target is away, it is not:
// more than the file may be missing. The mount may come back at any step.
func (f *files[T]) removed() bool {
	before := placeOf(f.path, false)
	_, err := os.Lstat(f.path)
	info, around := os.Stat(filepath.Dir(f.path))
	return os.IsNotExist(err) && around == nil && info.IsDir() && !before.remounted(f.place) && before == placeOf(f.path, false)
}

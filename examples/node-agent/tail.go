package main

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	chunk   = 64 << 10 // bytes of one read
	maxLine = 1 << 20  // a longer line is told in parts
)

// position is a place in the log of a container. All lines before it have been told.
type position struct {
	Restart int    `json:"restart"` // the N of N.log
	Inode   uint64 `json:"inode"`   // 0: nothing has been read
	Offset  int64  `json:"offset"`
}

// tail reads the log files of one container, one after another: first the files that a rotation has
// renamed, then 0.log, 1.log and so on, a file for each restart.
type tail struct {
	folder string
	at     position
	file   *os.File // nil: at is to be opened
	rest   []byte   // behind at: the beginning of a line
}

// logFile is one file of a container's log.
type logFile struct {
	restart int
	name    string
	info    fs.FileInfo
}

// read tells the lines that have been written since the last call, of budget bytes or so. more says
// that there are others.
func (t *tail) read(budget int, tell func(line []byte)) (more bool, err error) {
	for budget > 0 {
		if t.file == nil {
			if opened, err := t.open(); err != nil || !opened {
				return false, err
			}
		}
		// The next file is looked up before this one is read to its end: once there is another
		// file, nothing is written into this one.
		next, err := t.next()
		if err != nil {
			return false, err
		}
		n, err := t.readFile(budget, tell)
		budget -= n
		if err != nil || n == 0 && next == nil {
			return false, err
		}
		if n == 0 {
			t.flush(tell)
			if err := t.begin(*next); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// readFile tells the lines of the open file, up to its end or the budget.
func (t *tail) readFile(budget int, tell func(line []byte)) (read int, err error) {
	info, err := t.file.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() < t.at.Offset+int64(len(t.rest)) { // it was truncated
		t.at.Offset, t.rest = 0, nil
	}
	for read < budget {
		buffer := make([]byte, chunk)
		n, err := t.file.ReadAt(buffer, t.at.Offset+int64(len(t.rest)))
		read += n
		t.rest = append(t.rest, buffer[:n]...)
		for {
			line, rest, whole := bytes.Cut(t.rest, []byte{'\n'})
			if !whole {
				break
			}
			tell(line)
			t.at.Offset += int64(len(line)) + 1
			t.rest = rest
		}
		if len(t.rest) > maxLine {
			t.flush(tell)
		}
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		if err != nil {
			return read, err
		}
	}
	return read, nil
}

// flush tells a line without its end.
func (t *tail) flush(tell func(line []byte)) {
	if len(t.rest) > 0 {
		tell(t.rest)
		t.at.Offset += int64(len(t.rest))
		t.rest = nil
	}
}

// open opens the file of the position. If it is gone, the first one behind it is opened.
func (t *tail) open() (opened bool, err error) {
	files, err := t.files()
	if err != nil || len(files) == 0 {
		return false, err
	}
	here := slices.IndexFunc(files, func(f logFile) bool { return t.at.Inode != 0 && inode(f.info) == t.at.Inode })
	if here < 0 {
		here = max(0, slices.IndexFunc(files, func(f logFile) bool { return t.at.Inode == 0 || f.restart >= t.at.Restart }))
		err := t.begin(files[here])
		return t.file != nil, err
	}
	t.file, err = os.Open(filepath.Join(t.folder, files[here].name))
	return true, err
}

// begin goes on at the beginning of another file.
func (t *tail) begin(f logFile) error {
	file, err := os.Open(filepath.Join(t.folder, f.name))
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil || !os.SameFile(info, f.info) { // it was rotated since it was listed: look again
		return errors.Join(err, file.Close())
	}
	t.close()
	t.file, t.at = file, position{Restart: f.restart, Inode: inode(info)}
	return nil
}

func (t *tail) close() {
	if t.file != nil {
		_ = t.file.Close()
	}
	t.file, t.rest = nil, nil
}

// next is the file behind the open one, or nil.
func (t *tail) next() (*logFile, error) {
	files, err := t.files()
	if err != nil {
		return nil, err
	}
	open, err := t.file.Stat()
	if err != nil {
		return nil, err
	}
	here := slices.IndexFunc(files, func(f logFile) bool { return os.SameFile(f.info, open) })
	if here < 0 { // it was removed, or a rotation is compressing it
		here = slices.IndexFunc(files, func(f logFile) bool { return f.restart >= t.at.Restart }) - 1
	}
	if here+1 >= len(files) || here < -1 {
		return nil, nil
	}
	return &files[here+1], nil
}

// files are the log files of the container, in the order in which they were written. Compressed
// files are left out.
func (t *tail) files() (files []logFile, err error) {
	entries, err := os.ReadDir(t.folder)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		number, rotated, isLog := strings.Cut(entry.Name(), ".log")
		restart, err := strconv.Atoi(number)
		if !isLog || err != nil || strings.HasSuffix(rotated, ".gz") || strings.HasSuffix(rotated, ".tmp") {
			continue
		}
		if info, err := os.Stat(filepath.Join(t.folder, entry.Name())); err == nil && info.Mode().IsRegular() {
			files = append(files, logFile{restart, entry.Name(), info})
		}
	}
	slices.SortFunc(files, func(a, b logFile) int {
		// Rotated files end in the time of their rotation; the file that is written is the last.
		return cmp.Or(cmp.Compare(a.restart, b.restart), cmp.Compare(len(b.name), len(a.name)), cmp.Compare(a.name, b.name))
	})
	return files, nil
}

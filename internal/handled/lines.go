package handled

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-go/tributary/store"
)

const magic = "tributary handled 2 "

// header is the first line, as JSON.
type header struct {
	Owner
	// Passed is when every key was due for the last time.
	Passed time.Time
	// Reached are the newest versions that a state which is done may have, by feed.
	Reached []store.Version
}

// reach takes in the versions at a step.
func (h *header) reach(seen []store.Version) {
	for i, at := range seen {
		if reached := &h.Reached[i]; *reached == "" || reached.Before(at) {
			*reached = at
		}
	}
}

// parse takes the entries. An unfinished last line is of a step that had no consequence yet. On an
// error it has taken those that can be read.
func (f *File[K]) parse(text []byte) (was header, damage error) {
	n := 0
	for line := range bytes.Lines(text) {
		line, whole := bytes.CutSuffix(line, []byte("\n"))
		if n++; n == 1 {
			first, ours := bytes.CutPrefix(line, []byte(magic))
			if !ours || json.Unmarshal(first, &was) != nil || len(was.Reached) != len(was.Feeds) {
				damage = errors.New("it is not a file of handled keys")
			}
			continue
		}
		e, key, seen, ok := parseLine(string(line))
		switch {
		case ok && whole && len(seen) <= len(was.Reached):
			f.set(key, e)
			was.reach(seen)
		case whole && damage == nil:
			damage = fmt.Errorf("line %d is damaged", n)
		}
	}
	if n == 0 {
		damage = errors.New("it is empty")
	}
	return was, damage
}

// begun stands in place of a state.
const begun = "begun"

// line is "begun", or a state and the versions seen, and the key.
func line(key string, e entry, seen []store.Version) string {
	if !e.done {
		return begun + " " + strconv.Quote(key) + "\n"
	}
	step := []string{hex.EncodeToString(e.state[:])}
	for _, at := range seen {
		step = append(step, strconv.QuoteToASCII(string(at)))
	}
	return strings.Join(step, ",") + " " + strconv.Quote(key) + "\n"
}

func parseLine(line string) (e entry, key string, seen []store.Version, ok bool) {
	step, quoted, _ := strings.Cut(line, " ")
	key, err := strconv.Unquote(quoted)
	if err != nil || step == begun {
		return e, key, nil, err == nil
	}
	state, versions, _ := strings.Cut(step, ",")
	for at := range strings.SplitSeq(versions, ",") {
		version, err := strconv.Unquote(at)
		if err != nil && versions != "" {
			return e, key, nil, false
		}
		if versions != "" {
			seen = append(seen, store.Version(version))
		}
	}
	e.done = true
	n, err := hex.Decode(e.state[:], []byte(state)[:min(len(state), 2*len(e.state))])
	return e, key, seen, err == nil && n == len(e.state) && len(state) == 2*n
}

// writeLocked appends a line, or replaces the file; an empty line asks for that. If it fails, it
// removes the file, whose entries would soon be too old. It fails if that fails too.
func (f *File[K]) writeLocked(line string) error {
	var err error
	switch {
	case f.closed, f.out == nil && time.Since(f.tried) < again:
		return nil
	case f.out == nil || line == "" || f.lines > 2*len(f.entries)+f.slack:
		err = f.replace()
	default:
		f.lines++
		_, err = f.out.WriteString(line)
	}
	if err == nil {
		return nil
	}
	f.warn(fmt.Errorf("%s cannot be written, and is removed until it can: %w", f.path, err))
	if f.out != nil {
		_ = f.out.Close()
	}
	f.out, f.tried = nil, time.Now()
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.tried = time.Time{}
		return fmt.Errorf("the file of handled keys can neither be written nor removed: %w", err)
	}
	return nil
}

// replace writes all entries to a new file, which takes the place of the old one at once.
func (f *File[K]) replace() error {
	first, err := json.Marshal(f.header)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	text.WriteString(magic + string(first) + "\n")
	for key, e := range f.entries {
		text.WriteString(line(key, e, nil))
	}
	path := f.path + ".new"
	_ = os.Remove(path) // of a process that was killed
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = out.Write(text.Bytes()); err == nil {
		err = os.Rename(path, f.path)
	}
	if err != nil {
		return errors.Join(err, out.Close(), os.Remove(path))
	}
	if f.out != nil {
		_ = f.out.Close()
	}
	f.out, f.lines = out, len(f.entries)
	return nil
}

// Close ends the writing. The file stays, and calls that still run note nothing in it.
func (f *File[K]) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	err := f.lock.Close()
	if f.out != nil {
		err = errors.Join(f.out.Close(), err)
	}
	return err
}

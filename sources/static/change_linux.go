package static

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// tellsChanges: a file that looks untouched is unchanged. The time of modification alone would not
// do: tools that write in place set it as they like.
const tellsChanges = true

// changed returns the time of change (ctime), which no writer can set.
func changed(info fs.FileInfo) time.Time {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(stat.Ctim.Unix())
	}
	return time.Time{}
}

// mountOf tells which mount a folder is on. The device would not do: a bind mount has that of the
// file system below it. The zero mount is one that is not known.
func mountOf(folder string) mount {
	opened, err := os.Open(folder)
	if err != nil {
		return mount{}
	}
	defer opened.Close()
	var m mount
	if info, err := opened.Stat(); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			m.device = uint64(stat.Dev)
		}
	}
	about, _ := os.ReadFile(fmt.Sprint("/proc/self/fdinfo/", opened.Fd()))
	for line := range strings.Lines(string(about)) {
		if id, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			m.id = strings.TrimSpace(id)
		}
	}
	return m
}

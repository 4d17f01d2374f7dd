//go:build unix

package main

import (
	"io/fs"
	"syscall"
)

// inode tells a file from others, also after it was renamed.
func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Ino)
	}
	return 0
}

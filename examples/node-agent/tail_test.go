package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// container is the log of a container, as a runtime and a kubelet write it.
type container struct {
	t               *testing.T
	folder          string
	restart, rotate int
}

func (c *container) path() string { return filepath.Join(c.folder, fmt.Sprintf("%d.log", c.restart)) }

func (c *container) write(text string) {
	file, err := os.OpenFile(c.path(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(c.t, err)
	_, err = file.WriteString(text)
	require.NoError(c.t, err)
	require.NoError(c.t, file.Close())
}

// rename is the first half of a rotation; the second one is the next write.
func (c *container) rename() {
	if os.Rename(c.path(), fmt.Sprintf("%s.20260102-%06d", c.path(), c.rotate)) == nil {
		c.rotate++
	}
}

// readAll is the lines until there are no more, a few bytes at a time.
func readAll(t *testing.T, log *tail) (lines []string) {
	t.Helper()
	for {
		more, err := log.read(7, func(line []byte) { lines = append(lines, string(line)) })
		require.NoError(t, err)
		if !more {
			return lines
		}
	}
}

// TestTail: each line once and in order, across whatever happens to files.
func TestTail(t *testing.T) {
	c := &container{t: t, folder: t.TempDir()}
	log := &tail{folder: c.folder}
	defer log.close()
	require.Empty(t, readAll(t, log), "there is no file yet")
	c.write("a\nb\nhal")
	require.Equal(t, []string{"a", "b"}, readAll(t, log))
	c.write("f\n")
	require.Equal(t, []string{"half"}, readAll(t, log))
	c.rename()
	require.Empty(t, readAll(t, log))
	c.write("c\n")
	c.rename()
	c.write("d\n")
	require.Equal(t, []string{"c", "d"}, readAll(t, log), "two rotations at once")
	c.restart++
	c.write("e\nno end")
	c.restart++
	c.write("f\n")
	require.Equal(t, []string{"e", "no end", "f"}, readAll(t, log), "a container that was killed in a line, and restarted")
	require.NoError(t, os.Truncate(c.path(), 0))
	require.Empty(t, readAll(t, log))
	c.write("g\n")
	require.Equal(t, []string{"g"}, readAll(t, log))
	require.NoError(t, os.Remove(c.path()))
	c.write("h\n")
	require.Equal(t, []string{"h"}, readAll(t, log), "a file that was removed and made anew")
	require.NoError(t, os.WriteFile(c.path()+".20260101-000000.gz", []byte("no log\n"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(c.folder, "9.log"), 0o700))
	require.Empty(t, readAll(t, log))
}

func TestLongLinesAreTold(t *testing.T) {
	c := &container{t: t, folder: t.TempDir()}
	c.write(string(make([]byte, maxLine+chunk)) + "\n")
	total := 0
	log := &tail{folder: c.folder}
	defer log.close()
	more, err := log.read(10*maxLine, func(line []byte) { total += len(line) })
	require.NoError(t, err)
	require.False(t, more)
	require.Equal(t, maxLine+chunk, total)
}

// TestTailAgainstAModel: writes, rotations, restarts of the container and of the agent, and reads
// at any time: each whole line is told once, in order.
func TestTailAgainstAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		c := &container{t: t, folder: t.TempDir()}
		log := &tail{folder: c.folder}
		var want, got []string
		for n := range 60 {
			switch random.IntN(8) {
			case 0:
				c.rename()
			case 1:
				c.restart++
				c.write("") // it is there from its start
			case 2: // the agent restarts
				log.close()
				log = &tail{folder: c.folder, at: log.at}
			case 3, 4:
				got = append(got, readAll(t, log)...)
			default:
				line := fmt.Sprint("line ", n)
				c.write(line + "\n")
				want = append(want, line)
			}
		}
		got = append(got, readAll(t, log)...)
		log.close()
		require.Equal(t, want, got)
	}
}

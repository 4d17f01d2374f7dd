//go:build unix

package sources_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

func TestFIFOsAndSocketsAreNeverOpened(t *testing.T) {
	path := folder(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(path, "early"), 0o600))
	r := watching(t, path)
	r.expect("ADD file")
	r.problem("early is not a regular file")
	require.NoError(t, syscall.Mkfifo(filepath.Join(path, "late"), 0o600))
	r.problem("late is not a regular file")
	listener, err := net.Listen("unix", filepath.Join(path, "socket"))
	require.NoError(t, err)
	defer listener.Close()
	r.problem("socket is not a regular file")
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(path, "device")))
	r.problem("device is not a regular file")
	put(t, filepath.Join(path, "z.yaml"), manifestOf("z", "v1"))
	r.expect("ADD file z-node-1=v1")
	// Nobody waits at the other end: a writer that does not want to wait is refused.
	_, err = os.OpenFile(filepath.Join(path, "late"), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	require.ErrorIs(t, err, syscall.ENXIO)
	for _, name := range []string{"early", "socket", "device"} {
		alone := watching(t, filepath.Join(path, name))
		alone.problem(name + " is not a regular file")
		require.False(t, alone.Status()[0].Seen)
	}
}

func TestConfigMapSwap(t *testing.T) {
	for _, single := range []bool{false, true} {
		t.Run(fmt.Sprintf("single=%t", single), func(t *testing.T) {
			path := folder(t)
			version := func(name, image string) {
				require.NoError(t, os.Mkdir(filepath.Join(path, name), 0o700))
				put(t, filepath.Join(path, name, "a.yaml"), manifestOf("p", image))
				require.NoError(t, os.Symlink(name, filepath.Join(path, "..data_tmp")))
				require.NoError(t, os.Rename(filepath.Join(path, "..data_tmp"), filepath.Join(path, "..data")))
			}
			version("..v1", "v1")
			file := filepath.Join(path, "a.yaml")
			require.NoError(t, os.Symlink("..data/a.yaml", file))
			what := path
			if single {
				what = file
			}
			r := watching(t, what)
			r.expect("ADD file p-node-1=v1")
			for i := 2; i < 6; i++ {
				// the old version is left where it is
				version(fmt.Sprint("..v", i), fmt.Sprint("v", i))
				r.expect(fmt.Sprintf("REMOVE file p-node-1=v%d", i-1), fmt.Sprintf("ADD file p-node-1=v%d", i))
			}
		})
	}
}

func TestSymlinkChain(t *testing.T) {
	base := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	for _, name := range []string{"manifests", "one", "two", "other"} {
		require.NoError(t, os.Mkdir(in(name), 0o700))
	}
	put(t, in("two", "real.yaml"), manifestOf("p", "v1"))
	require.NoError(t, os.Symlink("../two/real.yaml", in("one", "link.yaml")))
	require.NoError(t, os.Symlink(in("one", "link.yaml"), in("manifests", "a.yaml")))
	r := watching(t, in("manifests"))
	r.expect("ADD file p-node-1=v1")
	put(t, in("two", "real.yaml"), manifestOf("p", "v2")) // the end of the chain
	r.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
	overwrite(t, in("two", "real.yaml"), manifestOf("p", "v3"))
	r.expect("REMOVE file p-node-1=v2", "ADD file p-node-1=v3")
	put(t, in("other", "real.yaml"), manifestOf("p", "v4"))
	require.NoError(t, os.Symlink("../other/real.yaml", in("one", "link.new")))
	require.NoError(t, os.Rename(in("one", "link.new"), in("one", "link.yaml"))) // its middle
	r.expect("REMOVE file p-node-1=v3", "ADD file p-node-1=v4")
	require.NoError(t, os.Remove(in("other", "real.yaml"))) // a dangling link keeps its pod
	r.problem("a.yaml")
	require.Equal(t, 1, r.Status()[0].Pods)
	put(t, in("other", "real.yaml"), manifestOf("p", "v5"))
	r.expect("REMOVE file p-node-1=v4", "ADD file p-node-1=v5")
}

func TestSwitchedFolder(t *testing.T) {
	base := t.TempDir()
	release := func(name string) {
		require.NoError(t, os.MkdirAll(filepath.Join(base, name, "manifests"), 0o700))
		put(t, filepath.Join(base, name, "manifests", "a.yaml"), manifestOf(name, "v1"))
		require.NoError(t, os.Symlink(name, filepath.Join(base, "new")))
		require.NoError(t, os.Rename(filepath.Join(base, "new"), filepath.Join(base, "current")))
	}
	release("r1")
	r := watching(t, filepath.Join(base, "current", "manifests"))
	r.expect("ADD file r1-node-1=v1")
	release("r2")
	r.expect("REMOVE file r1-node-1=v1", "ADD file r2-node-1=v1")
	// nobody looks there any more
	put(t, filepath.Join(base, "r1", "manifests", "b.yaml"), manifestOf("late", "v1"))
	put(t, filepath.Join(base, "r2", "manifests", "b.yaml"), manifestOf("b", "v1"))
	r.expect("ADD file b-node-1=v1")
}

func TestSymlinkLoop(t *testing.T) {
	path := folder(t)
	require.NoError(t, os.Symlink("b.yaml", filepath.Join(path, "a.yaml")))
	require.NoError(t, os.Symlink("a.yaml", filepath.Join(path, "b.yaml")))
	r := watching(t, path)
	r.expect("ADD file")
	r.problem("too many levels of symbolic links")
	loop := start(t, sources.File(filepath.Join(path, "a.yaml"), static.WithInterval(time.Hour)))
	loop.problem("too many levels of symbolic links")
	require.False(t, loop.Status()[0].Seen)
}

// A file of which the system reads nothing, for root too.
func TestFileThatCannotBeRead(t *testing.T) {
	path := folder(t)
	if err := os.Symlink("/proc/self/mem", filepath.Join(path, "a.yaml")); err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat("/proc/self/mem"); err != nil {
		t.Skip("there is no /proc here")
	}
	put(t, filepath.Join(path, "b.yaml"), manifestOf("b", "v1"))
	r := watching(t, path)
	r.expect("ADD file b-node-1=v1")
	r.problem("input/output error")
}

func TestKubeletHangsOnAFIFO(t *testing.T) {
	k := likeKubelet(t, "")
	k.expect("ADD file")
	k.watched()
	fifo := k.path("fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	var pipe *os.File
	require.Eventually(t, func() (open bool) {
		var err error
		pipe, err = os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil // somebody reads
	}, patience, time.Millisecond)
	put(t, k.path("a.yaml"), manifestOf("a", "v1"))
	select {
	case k.ticks <- time.Now():
		require.Fail(t, "the source does not hang")
	case u := <-k.Updates():
		require.Fail(t, "the source does not hang", describe(u))
	case <-time.After(200 * time.Millisecond):
	}
	_, err := pipe.WriteString(manifestOf("p", "v1"))
	require.NoError(t, err)
	require.NoError(t, pipe.Close())
	k.expect("ADD file p-node-1=v1", "ADD file a-node-1=v1")
	// And it can be stopped while it hangs again.
	require.NoError(t, syscall.Mkfifo(k.path("fifo2"), 0o600))
}

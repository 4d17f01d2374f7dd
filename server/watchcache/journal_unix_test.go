//go:build unix

package watchcache_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/store"
)

// limitFiles has every write fail that makes a file longer than so many bytes, until lift or the
// end of the test.
func limitFiles(t *testing.T, bytes uint64) (lift func()) {
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	now := before
	now.Cur = bytes
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now))
	lift = func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)) }
	t.Cleanup(lift)
	return lift
}

// apart runs the test in a process of its own, and reports whether this is that one. The limit is a
// process's, and the testing package writes a file of its own, too.
func apart(t *testing.T) bool {
	const variable = "TRIBUTARY_TEST_APART"
	if os.Getenv(variable) != "" {
		return true
	}
	alone := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	alone.Env = append(os.Environ(), variable+"=1")
	out, err := alone.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PASS")
	return false
}

// TestADiskThatTakesNoMore: the cache goes on, the status says why the journal does not, and since
// when. What was written before is whole. Once there is room, the file is begun anew by itself.
func TestADiskThatTakesNoMore(t *testing.T) {
	if !apart(t) {
		return
	}
	folder := t.TempDir()
	j := openJournal(t, folder).run()
	require.NoError(t, j.cache.Replace(store.Items(stored("a", 3)), store.At("7")))
	j.awaitVersion(7)
	lift := limitFiles(t, 4000)
	for version := 8; version < 200; version++ {
		require.NoError(t, j.cache.Update(stored(fmt.Sprint("pod-", version%20), version)))
	}
	require.Eventually(t, func() bool { return j.journal.Status().Err != nil }, time.Minute, time.Millisecond)
	s := j.journal.Status()
	require.ErrorContains(t, s.Err, "watchcache: journal "+s.Path+": write: file too large")
	require.WithinDuration(t, time.Now(), s.Since, 10*time.Second)
	require.Equal(t, "199", j.cache.ResourceVersion())

	killed := openJournal(t, folder)
	require.NoError(t, killed.journal.Status().Unused)
	require.NotEmpty(t, killed.journal.Status().Restored)

	lift()
	j.awaitVersion(199)
	require.Eventually(t, func() bool { return j.journal.Status().Err == nil }, time.Minute, time.Millisecond)
	require.Zero(t, j.journal.Status().Since)
	j.stop()
	require.Equal(t, states(j.cache), states(openJournal(t, folder).cache))
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 2, "the journal and its lock, and nothing that was not completed: %v", entries)
}

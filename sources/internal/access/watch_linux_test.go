package access

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
)

func none(string) bool { return false }

// TestOverflowIsAHint lets the system's queue of events run over while nobody reads it, with events
// that concern nobody. The one that does is lost; that some were lost is the hint.
func TestOverflowIsAHint(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	require.NoError(t, err)
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	if limit > 1<<17 {
		t.Skip("the queue is too long: ", limit)
	}
	folder := t.TempDir()
	var lines []string
	w := NewWatch(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 2}), none)
	w.watcher, err = fsnotify.NewWatcher() // nobody reads it yet
	require.NoError(t, err)
	require.Equal(t, "inotify", w.Follow(filepath.Join(folder, "manifests"), time.Hour))
	// The reader of the system's queue takes a buffer full of them, and waits for somebody to take
	// the first.
	from, to := filepath.Join(folder, "noise0"), filepath.Join(folder, "noise1")
	require.NoError(t, os.WriteFile(from, nil, 0o600))
	for range limit { // two events each
		require.NoError(t, os.Rename(from, to))
		from, to = to, from
	}
	require.NoError(t, os.Mkdir(filepath.Join(folder, "manifests"), 0o700))
	go w.forward()
	select {
	case <-w.Changed():
	case <-time.After(15 * time.Second):
		require.Fail(t, "no hint")
	}
	w.Close()
	require.NotEmpty(t, lines)
	require.Contains(t, lines[0], "looking at everything")
	require.Contains(t, lines[0], fsnotify.ErrEventOverflow.Error())
}

func TestWhatDoesNotConcernIsNoHint(t *testing.T) {
	folder := t.TempDir()
	w := NewWatch(logr.Discard(), none)
	defer w.Close()
	w.Follow(filepath.Join(folder, "manifests"), time.Hour)
	for i := range 100 {
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprint("noise", i)), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(folder, "manifests"), 0o700))
	<-w.Changed()
	select {
	case <-w.Changed():
		require.Fail(t, "a second hint")
	case <-time.After(50 * time.Millisecond):
	}
}

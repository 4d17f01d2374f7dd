package watchcache_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

const identity = "https://upstream"

// journaled is a cache with a journal.
type journaled struct {
	t       testing.TB
	cache   *watchcache.Cache[*corev1.Pod]
	journal *watchcache.Journal[*corev1.Pod]
	stop    func()
}

// openJournal makes a cache, and restores it from a folder.
func openJournal(t testing.TB, folder string, options ...watchcache.Option) *journaled {
	t.Helper()
	c := newCache(t, options...)
	j, err := watchcache.OpenJournal(c, folder, identity)
	require.NoError(t, err)
	t.Cleanup(j.Abandon)
	return &journaled{t: t, cache: c, journal: j}
}

// run writes the journal until stop.
func (j *journaled) run() *journaled {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- j.journal.Run(ctx) }()
	stopped := false
	j.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(j.t, <-ended)
		}
	}
	j.t.Cleanup(j.stop)
	return j
}

// awaitVersion waits until the file has a version.
func (j *journaled) awaitVersion(version int) {
	j.t.Helper()
	require.Eventually(j.t, func() bool { return j.journal.Status().Version == fmt.Sprint(version) }, time.Minute, time.Millisecond,
		"%+v", j.journal.Status())
}

func TestAJournalOutlivesItsProcess(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "journals")
	first := openJournal(t, folder).run()
	require.Empty(t, first.journal.Status().Restored)
	require.NoError(t, first.journal.Status().Unused)
	require.NoError(t, first.cache.Replace(store.Items(stored("a", 3), stored("b", 4)), store.At("7")))
	require.NoError(t, first.cache.Update(stored("a", 8)))
	require.NoError(t, first.cache.Add(stored("c", 9)))
	require.NoError(t, first.cache.Delete(stored("b", 10)))
	require.NoError(t, first.cache.Bookmark("15"))
	first.awaitVersion(15)
	first.stop()

	path := first.journal.Status().Path
	require.Equal(t, filepath.Join(folder, "pods.v1.journal"), path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	info, err = os.Stat(folder)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	second := openJournal(t, folder)
	require.Equal(t, "15", second.journal.Status().Restored)
	require.NoError(t, second.journal.Status().Unused)
	require.Equal(t, "15", second.cache.ResourceVersion())
	require.Equal(t, "15", second.cache.Snapshot().ResourceVersion())
	start(t, second.cache.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "7"})).
		Require("MODIFIED a@8", "ADDED c@9", "DELETED b@10")
	start(t, second.cache.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "6"})).RequireExpired()
	second.run()
	require.NoError(t, second.cache.Add(stored("d", 16)))
	second.awaitVersion(16)
	second.stop()

	third := openJournal(t, folder)
	start(t, third.cache.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "9"})).Require("DELETED b@10", "ADDED d@16")
}

package watchcache_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// TestAFullDisk: a disk with room for one file and not for two is used all the same. Mounting one
// needs root.
func TestAFullDisk(t *testing.T) {
	folder := t.TempDir()
	if err := syscall.Mount("none", folder, "tmpfs", 0, "size=256k,mode=700"); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(folder, 0)) })
	large := func(name string, version int) *corev1.Pod {
		p := stored(name, version)
		p.Annotations = map[string]string{"large": strings.Repeat("x", 1000)}
		return p
	}
	j := openJournal(t, folder, watchcache.WithWindow(5))
	require.NoError(t, j.cache.Replace(store.Items(stored("a", 3)), store.At("7")))
	j.journal.Step(t.Context(), 0)
	failed := false
	for version := 8; version < 1000; version++ {
		require.NoError(t, j.cache.Update(large(fmt.Sprint("pod-", version%120), version)))
		j.journal.Step(t.Context(), 20_000)
		failed = failed || j.journal.Status().Err != nil
	}
	j.journal.Step(t.Context(), 20_000)
	require.NoError(t, j.journal.Status().Err)
	require.Equal(t, "999", j.journal.Status().Version)
	j.journal.Abandon()
	require.Equal(t, states(j.cache), states(openJournal(t, folder).cache))
	require.True(t, failed, "there was always room")
}

package sources

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/store"
)

// podsAt is n pods at a version; every pod says the version, so that a mixture of two states shows.
func podsAt(t testing.TB, n, version int) Pods {
	var pods store.Indexer[*corev1.Pod]
	for i := range n {
		require.NoError(t, pods.Add(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%d", i), ResourceVersion: strconv.Itoa(version)},
			Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		}))
	}
	require.NoError(t, pods.Bookmark(strconv.Itoa(version)))
	return pods.Snapshot()
}

func requireState(t *testing.T, got Pods, n, version int) {
	t.Helper()
	require.Equal(t, strconv.Itoa(version), got.ResourceVersion())
	require.Equal(t, podsAt(t, n, version).Sorted(), got.Sorted())
}

func TestCheckpointKeepsTheState(t *testing.T) {
	c := newCheckpoint(t.TempDir(), "node-1", APISource)
	_, err := c.load()
	require.ErrorIs(t, err, fs.ErrNotExist)
	for version, n := range []int{3, 0, 200} {
		require.NoError(t, c.save(podsAt(t, n, version+1)))
		got, err := c.load()
		require.NoError(t, err)
		requireState(t, got, n, version+1)
	}
	info, err := os.Stat(c.path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	require.NoFileExists(t, c.path+".tmp")
}

// TestCheckpointCutAtEveryByte: a process that ends while it writes leaves a part of the new state beside the old one, at
// any byte. What is loaded is the old state; and a part in the place of the file is refused.
func TestCheckpointCutAtEveryByte(t *testing.T) {
	c := newCheckpoint(t.TempDir(), "node-1", APISource)
	require.NoError(t, c.save(podsAt(t, 2, 1)))
	whole, err := c.encode(podsAt(t, 3, 2))
	require.NoError(t, err)
	for cut := range whole {
		require.NoError(t, os.WriteFile(c.path+".tmp", whole[:cut], 0o600))
		got, err := c.load()
		require.NoError(t, err)
		requireState(t, got, 2, 1)

		_, err = c.decode(whole[:cut])
		require.Error(t, err, "cut at %d", cut)
	}
	require.NoError(t, c.save(podsAt(t, 3, 2)), "over what a crash has left")
	got, err := c.load()
	require.NoError(t, err)
	requireState(t, got, 3, 2)
}

func TestCheckpointDamagedAtEveryByte(t *testing.T) {
	c := newCheckpoint(t.TempDir(), "node-1", APISource)
	whole, err := c.encode(podsAt(t, 3, 2))
	require.NoError(t, err)
	for i := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[i] ^= byte(1 + rand.IntN(255))
		_, err := c.decode(damaged)
		require.Error(t, err, "damaged at %d", i)
	}
}

func TestCheckpointRefusesWhatIsForeign(t *testing.T) {
	folder := t.TempDir()
	other := newCheckpoint(folder, "node-2", APISource)
	require.NoError(t, other.save(podsAt(t, 1, 1)))
	c := newCheckpoint(folder, "node-1", APISource)
	for want, prepare := range map[string]func() error{
		`it is of node "node-2"`: func() error { return os.Rename(other.path, c.path) },
		"it is not a checkpoint": func() error { return os.WriteFile(c.path, make([]byte, 1000), 0o600) },
		"it has 5 bytes":         func() error { return os.WriteFile(c.path, []byte("hello"), 0o600) },
	} {
		require.NoError(t, prepare())
		_, err := c.load()
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, c.path)
	}
	require.NoError(t, c.save(podsAt(t, 1, 7)), "the next save replaces it")
}

func TestCheckpointSaysWhereItFails(t *testing.T) {
	c := newCheckpoint(filepath.Join(t.TempDir(), "missing"), "node-1", APISource)
	require.ErrorContains(t, c.save(podsAt(t, 1, 1)), c.path)
}

func TestCheckpointOfLongNames(t *testing.T) {
	folder := t.TempDir()
	node := strings.Repeat("a.very.long.name.", 15)[:253] // as long as a node's can be
	names := []string{APISource, "other", strings.Repeat("ö", 200), strings.Repeat("ö", 200) + "!"}
	for i, source := range names {
		require.NoError(t, newCheckpoint(folder, node, source).save(podsAt(t, 1, i+1)))
	}
	for i, source := range names {
		pods, err := newCheckpoint(folder, node, source).load()
		require.NoError(t, err)
		require.Equal(t, podsAt(t, 1, i+1).ResourceVersion(), pods.ResourceVersion())
	}
}

// TestCheckpointSurvivesKill kills a process that saves one state after the other, at random moments: what is loaded then
// is a whole state, and not older than the last one that the process had saved.
func TestCheckpointSurvivesKill(t *testing.T) {
	if folder := os.Getenv("TRIBUTARY_TEST_SAVE_FOREVER"); folder != "" {
		saveForever(t, folder)
	}
	c := newCheckpoint(t.TempDir(), "node-1", APISource)
	for range 10 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCheckpointSurvivesKill$")
		cmd.Env = append(os.Environ(), "TRIBUTARY_TEST_SAVE_FOREVER="+filepath.Dir(c.path))
		progress, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		saved := 0
		for until := 1 + rand.IntN(50); saved < until; {
			_, err := fmt.Fscanln(progress, &saved)
			require.NoError(t, err)
		}
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		got, err := c.load()
		require.NoError(t, err)
		version, err := strconv.Atoi(got.ResourceVersion())
		require.NoError(t, err)
		require.GreaterOrEqual(t, version, saved)
		requireState(t, got, version%100, version)
	}
}

func saveForever(t *testing.T, folder string) {
	c := newCheckpoint(folder, "node-1", APISource)
	for version := 1; ; version++ {
		if err := c.save(podsAt(t, version%100, version)); err != nil {
			os.Exit(1)
		}
		fmt.Println(version)
	}
}

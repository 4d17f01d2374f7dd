package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/ownfile"
)

// pods is the state of these tests.
type pods = *corev1.PodList

// newFile is the file of a node with pods.
func newFile(folder, node, name string) File[pods] {
	return In(folder, node, name, Content[pods]{
		Magic: "TRBPODS\x01", Suffix: ".pods",
		Encode: func(list pods) ([]byte, error) { return list.Marshal() },
		Decode: func(body []byte) (pods, error) {
			var list corev1.PodList
			return &list, list.Unmarshal(body)
		},
	})
}

// podsAt is n pods at a version; every pod says the version, so that a mixture of two states shows.
func podsAt(n, version int) pods {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}}
	for i := range n {
		list.Items = append(list.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%d", i), ResourceVersion: strconv.Itoa(version)},
			Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		})
	}
	return list
}

func requireState(t *testing.T, got pods, n, version int) {
	t.Helper()
	require.Equal(t, podsAt(n, version), got)
}

func TestCheckpointKeepsTheState(t *testing.T) {
	c := newFile(t.TempDir(), "node-1", "")
	_, err := c.Load()
	require.ErrorIs(t, err, fs.ErrNotExist)
	for version, n := range []int{3, 0, 200} {
		require.NoError(t, c.Save(podsAt(n, version+1)))
		got, err := c.Load()
		require.NoError(t, err)
		requireState(t, got, n, version+1)
	}
	info, err := os.Stat(c.path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	require.Empty(t, temporaries(t, c))
}

// TestCheckpointCutAtEveryByte: a process that ends while it writes leaves a part of the new state
// beside the old one, at any byte. Load returns the old state, and refuses a part in the place of
// the file.
func TestCheckpointCutAtEveryByte(t *testing.T) {
	c := newFile(t.TempDir(), "node-1", "")
	require.NoError(t, c.Save(podsAt(2, 1)))
	whole, err := c.seal(podsAt(3, 2))
	require.NoError(t, err)
	for cut := range whole {
		require.NoError(t, os.WriteFile(c.path+".123.tmp", whole[:cut], 0o600))
		got, err := c.Load()
		require.NoError(t, err)
		requireState(t, got, 2, 1)

		_, err = c.open(whole[:cut])
		require.Error(t, err, "cut at %d", cut)
	}
	require.NoError(t, c.Save(podsAt(3, 2)), "over what a crash has left")
	got, err := c.Load()
	require.NoError(t, err)
	requireState(t, got, 3, 2)
}

func TestCheckpointDamagedAtEveryByte(t *testing.T) {
	c := newFile(t.TempDir(), "node-1", "")
	whole, err := c.seal(podsAt(3, 2))
	require.NoError(t, err)
	for i := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[i] ^= byte(1 + rand.IntN(255))
		_, err := c.open(damaged)
		require.Error(t, err, "damaged at %d", i)
	}
}

func TestCheckpointRefusesWhatIsForeign(t *testing.T) {
	folder := t.TempDir()
	other := newFile(folder, "node-2", "")
	require.NoError(t, other.Save(podsAt(1, 1)))
	c := newFile(folder, "node-1", "")
	for want, prepare := range map[string]func() error{
		`it is of node "node-2"`: func() error { return os.Rename(other.path, c.path) },
		"it is not a checkpoint": func() error { return os.WriteFile(c.path, make([]byte, 1000), 0o600) },
		"it has 5 bytes":         func() error { return os.WriteFile(c.path, []byte("hello"), 0o600) },
	} {
		require.NoError(t, prepare())
		_, err := c.Load()
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, c.path)
	}
	require.NoError(t, c.Save(podsAt(1, 7)), "the next save replaces it")
}

// temporaries are the files that saves have left.
func temporaries(t *testing.T, c File[pods]) (paths []string) {
	entries, err := os.ReadDir(filepath.Dir(c.path))
	require.NoError(t, err)
	for _, entry := range entries {
		if path := filepath.Join(filepath.Dir(c.path), entry.Name()); path != c.path {
			paths = append(paths, path)
		}
	}
	return paths
}

// TestCheckpointTrustsNoTemporaryFile: what somebody else has put where a save writes is neither
// used nor followed.
func TestCheckpointTrustsNoTemporaryFile(t *testing.T) {
	c := newFile(t.TempDir(), "node-1", "")
	victim := filepath.Join(t.TempDir(), "victim")
	for name, prepare := range map[string]func(path string) error{
		"a file of mode 0666": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o666), os.Chmod(path, 0o666))
		},
		"a link": func(path string) error {
			return errors.Join(os.WriteFile(victim, []byte("precious"), 0o600), os.Symlink(victim, path))
		},
		"a folder": func(path string) error { return os.Mkdir(path, 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, prepare(c.path+".tmp"))
			t.Cleanup(func() { require.NoError(t, os.Remove(c.path+".tmp")) })
			require.NoError(t, c.Save(podsAt(3, 7)))
			info, err := os.Lstat(c.path)
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o600), info.Mode())
			if data, err := os.ReadFile(victim); err == nil {
				require.Equal(t, "precious", string(data))
			}
		})
	}
}

// TestCheckpointReplacesALink: a link in the place of the checkpoint is not read, and the next save
// puts a file there.
func TestCheckpointReplacesALink(t *testing.T) {
	c, elsewhere := newFile(t.TempDir(), "node-1", ""), newFile(t.TempDir(), "node-1", "")
	require.NoError(t, elsewhere.Save(podsAt(1, 1)))
	require.NoError(t, os.Symlink(elsewhere.path, c.path))
	_, err := c.Load()
	require.ErrorContains(t, err, c.path+" is not used: it is not a regular file")
	require.NoError(t, c.Save(podsAt(2, 2)))
	got, err := c.Load()
	require.NoError(t, err)
	requireState(t, got, 2, 2)
	got, err = elsewhere.Load()
	require.NoError(t, err)
	requireState(t, got, 1, 1)
}

func TestCheckpointThatOthersMayWriteIsNotUsed(t *testing.T) {
	c := newFile(t.TempDir(), "node-1", "")
	for mode, used := range map[fs.FileMode]bool{0o600: true, 0o644: true, 0o400: true, 0o620: false, 0o602: false, 0o666: false} {
		require.NoError(t, c.Save(podsAt(1, 1)))
		require.NoError(t, os.Chmod(c.path, mode))
		_, err := c.Load()
		if used {
			require.NoError(t, err, mode)
		} else {
			require.ErrorContains(t, err, fmt.Sprintf("others than its owner may write it (mode %#o)", mode))
		}
	}
}

// TestCheckpointRemovesWhatCrashesLeave: files of this checkpoint alone, and none that may be
// written just now.
func TestCheckpointRemovesWhatCrashesLeave(t *testing.T) {
	c := newFile(t.TempDir(), "node-1", "")
	folder, now := filepath.Dir(c.path), time.Now()
	put := func(name string, age time.Duration) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
		require.NoError(t, os.Chtimes(filepath.Join(folder, name), now.Add(-age), now.Add(-age)))
	}
	prepare := func() {
		for _, name := range []string{"node-1.pods.tmp", "node-1.pods.1.tmp", "node-1.pods.4711.tmp"} {
			put(name, 2*ownfile.StaleAfter)
		}
		put("node-1.pods.12.tmp", 0)
		put("node-1.pods.13.tmp", -2*ownfile.StaleAfter) // by a clock that was wrong
		for _, name := range []string{"node-1.pods.1.pods.5.tmp", "node-10.pods.5.tmp", "node-1.pods.tmp.pods", "node-1.pods.x.tmp"} {
			put(name, 2*ownfile.StaleAfter)
		}
	}
	left := []string{"node-1.pods.1.pods.5.tmp", "node-1.pods.12.tmp", "node-1.pods.tmp.pods", "node-1.pods.x.tmp", "node-10.pods.5.tmp"}
	for _, clean := range []func() error{
		func() error { _, err := c.Load(); return err },
		func() error { return c.Save(podsAt(1, 1)) },
	} {
		prepare()
		_ = clean()
		var names []string
		for _, path := range temporaries(t, c) {
			names = append(names, filepath.Base(path))
		}
		require.Equal(t, left, names)
	}
}

func TestCheckpointThatCannotReplaceLeavesNothing(t *testing.T) {
	c := newFile(t.TempDir(), "node-1", "")
	require.NoError(t, os.Mkdir(c.path, 0o700))
	require.ErrorContains(t, c.Save(podsAt(1, 1)), c.path)
	require.Empty(t, temporaries(t, c))
}

// TestCheckpointSaysWhereItFails, in the same words each time.
func TestCheckpointSaysWhereItFails(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "missing")
	c := newFile(folder, "node-1", "")
	for range 2 {
		require.EqualError(t, c.Save(podsAt(1, 1)), "checkpoint "+c.path+": open: no such file or directory")
	}
	require.EqualError(t, CheckFolder(folder), "the folder "+folder+" does not exist: make it before the agent starts")
	require.NoError(t, os.WriteFile(folder, nil, 0o600))
	require.EqualError(t, CheckFolder(folder), folder+" is not a folder")
	require.EqualError(t, CheckFolder(filepath.Join(folder, "below")),
		"the folder "+filepath.Join(folder, "below")+" cannot be used: stat: not a directory")
	require.NoError(t, CheckFolder(filepath.Dir(folder)))
}

func TestCheckpointOfLongNames(t *testing.T) {
	folder := t.TempDir()
	node := strings.Repeat("a.very.long.name.", 15)[:253] // as long as a node's can be
	names := []string{"", "other", strings.Repeat("ö", 200), strings.Repeat("ö", 200) + "!"}
	for i, source := range names {
		require.NoError(t, newFile(folder, node, source).Save(podsAt(1, i+1)))
	}
	for i, source := range names {
		got, err := newFile(folder, node, source).Load()
		require.NoError(t, err)
		require.Equal(t, podsAt(1, i+1).ResourceVersion, got.ResourceVersion)
	}
}

// TestCheckpointSurvivesKill kills a process that saves one state after the other, at random
// moments: what is loaded then is a whole state, and not older than the last one that the process
// had saved.
func TestCheckpointSurvivesKill(t *testing.T) {
	if folder := os.Getenv("TRIBUTARY_TEST_SAVE_FOREVER"); folder != "" {
		saveForever(t, folder)
	}
	c := newFile(t.TempDir(), "node-1", "")
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
		got, err := c.Load()
		require.NoError(t, err)
		version, err := strconv.Atoi(got.ResourceVersion)
		require.NoError(t, err)
		require.GreaterOrEqual(t, version, saved)
		requireState(t, got, version%100, version)
	}
}

func saveForever(t *testing.T, folder string) {
	c := newFile(folder, "node-1", "")
	for version := 1; ; version++ {
		if err := c.Save(podsAt(version%100, version)); err != nil {
			os.Exit(1)
		}
		fmt.Println(version)
	}
}

// TestSaverTakesAShareOfTheTime: a state is written within a second, and one that takes a second to
// write every twenty.
func TestSaverTakesAShareOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saves []time.Duration
		var cost atomic.Int64
		began := time.Now()
		s := NewSaver(In(t.TempDir(), "node-1", "", Content[int]{Magic: "TRBTEST\x01", Encode: func(int) ([]byte, error) {
			saves = append(saves, time.Since(began).Round(time.Second))
			time.Sleep(time.Duration(cost.Load()))
			return nil, nil
		}}), logr.Discard())
		stop := s.Run()
		for second := range 50 {
			if second == 3 {
				cost.Store(int64(time.Second))
			}
			s.Offer(second)
			time.Sleep(time.Second)
		}
		stop()
		require.Equal(t, []time.Duration{0, 1 * time.Second, 2 * time.Second, 3 * time.Second, 24 * time.Second, 45 * time.Second, 50 * time.Second}, saves)
	})
}

package watchcache_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// writtenJournal is the file of a cache after some writes, and the states that the cache had.
func writtenJournal(t testing.TB) (file []byte, had []map[string]string) {
	folder := t.TempDir()
	j := openJournal(t, folder)
	step := func(err error) {
		require.NoError(t, err)
		j.journal.Step(t.Context(), 1<<20)
		require.NoError(t, j.journal.Status().Err)
		had = append(had, states(j.cache))
	}
	step(j.cache.Replace(store.Items(stored("a", 3), stored("b", 4)), store.At("7")))
	step(j.cache.Update(stored("a", 8)))
	step(j.cache.Delete(stored("b", 10)))
	step(j.cache.Replace(store.Items(stored("a", 8), stored("c", 13), stored("d", 14)), store.At("15")))
	step(j.cache.Bookmark("20"))
	step(j.cache.Add(stored("e", 21)))
	j.journal.Abandon()
	file, err := os.ReadFile(j.journal.Status().Path)
	require.NoError(t, err)
	return file, had
}

// reopen opens a journal with this content.
func reopen(t testing.TB, folder string, file []byte) *journaled {
	require.NoError(t, os.WriteFile(filepath.Join(folder, "pods.v1.journal"), file, 0o600))
	return openJournal(t, folder)
}

// TestAJournalIsCutOffAnywhere: what is whole is used, and the file goes on behind it.
func TestAJournalIsCutOffAnywhere(t *testing.T) {
	file, had := writtenJournal(t)
	folder, last, seen := t.TempDir(), 0, map[int]bool{}
	for length := range len(file) + 1 {
		for _, part := range [][]byte{file[:length], append(bytes.Clone(file[:length]), make([]byte, 100)...)} {
			j := reopen(t, folder, part)
			s := j.journal.Status()
			if s.Restored == "" {
				require.ErrorContains(t, s.Unused, "pods.v1.journal is not used: it is ")
				require.Zero(t, last, "a longer part is no worse")
				require.Empty(t, states(j.cache))
				j.journal.Abandon()
				continue
			}
			require.NoError(t, s.Unused)
			for last < len(had) && len(seen) > 0 && !equalStates(had[last], states(j.cache)) {
				last++
			}
			require.Less(t, last, len(had), "a state that the cache never had: %v", states(j.cache))
			seen[last] = true
			if length%7 > 0 {
				j.journal.Abandon()
				continue
			}
			j.journal.Step(t.Context(), 1<<20)
			require.NoError(t, j.cache.Add(stored("z", 30)))
			j.journal.Step(t.Context(), 1<<20)
			require.NoError(t, j.journal.Status().Err)
			j.journal.Abandon()
			again := openJournal(t, folder)
			require.Equal(t, "30", again.journal.Status().Restored)
			require.Equal(t, states(j.cache), states(again.cache))
			again.journal.Abandon()
		}
	}
	require.GreaterOrEqual(t, len(seen), 4)
}

func equalStates(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, state := range a {
		if b[key] != state {
			return false
		}
	}
	return true
}

// TestAJournalDamagedAtEveryByte: damaged content is not used, and changes end before the damage.
func TestAJournalDamagedAtEveryByte(t *testing.T) {
	file, had := writtenJournal(t)
	folder, unused := t.TempDir(), 0
	for at := range file {
		damaged := bytes.Clone(file)
		damaged[at] ^= 1 << (at % 8)
		j := reopen(t, folder, damaged)
		if j.journal.Status().Restored == "" {
			require.ErrorContains(t, j.journal.Status().Unused, filepath.Join(folder, "pods.v1.journal")+" is not used: it is ")
			require.Empty(t, states(j.cache))
			_, err := j.cache.Watcher(watchcache.Request{})
			require.Error(t, err, "the cache is empty, and so not filled")
			unused++
			continue
		}
		require.Contains(t, had, states(j.cache))
	}
	require.Greater(t, unused, 200, "the head and the content")
}

// TestAForeignJournalIsNotUsed: it is named with the reason, and replaced.
func TestAForeignJournalIsNotUsed(t *testing.T) {
	good, _ := writtenJournal(t)
	for why, write := range map[string]func(path string) error{
		"it is not a journal, or one of another format version": func(path string) error {
			return os.WriteFile(path, append([]byte("TRBJRNL\x01"), good[8:]...), 0o600)
		},
		"it is of the upstream \"elsewhere\", and the cache is of \"https://upstream\"": func(path string) error {
			c := newCache(t)
			j, err := watchcache.OpenJournal(c, filepath.Dir(path), "elsewhere")
			require.NoError(t, err)
			require.NoError(t, c.Replace(store.Items(stored("x", 900)), store.At("900")))
			j.Step(t.Context(), 0)
			j.Abandon()
			return j.Status().Err
		},
		"it is of /v1, Resource=pods (Pod) as json, and the cache is of /v1, Resource=pods (Pod) as protobuf": func(path string) error {
			c, err := watchcache.NewCache(watchcache.Kind[*unstructured.Unstructured]{Version: "v1", Plural: "pods", Kind: "Pod"})
			require.NoError(t, err)
			j, err := watchcache.OpenJournal(c, filepath.Dir(path), identity)
			require.NoError(t, err)
			require.NoError(t, c.Replace(store.Items[*unstructured.Unstructured](), store.At("900")))
			j.Step(t.Context(), 0)
			j.Abandon()
			return j.Status().Err
		},
		"others than its owner may write it": func(path string) error {
			return os.WriteFile(path, good, 0o600) // and the mode below
		},
		"it is not a regular file": func(path string) error { return os.Symlink("/etc/hostname", path) },
	} {
		path := filepath.Join(t.TempDir(), "pods.v1.journal")
		require.NoError(t, write(path), why)
		if why == "others than its owner may write it" {
			require.NoError(t, os.Chmod(path, 0o666))
		}
		j := openJournal(t, filepath.Dir(path))
		s := j.journal.Status()
		require.Empty(t, s.Restored, why)
		require.ErrorContains(t, s.Unused, "watchcache: journal "+path+" is not used: "+why)
		require.Empty(t, j.cache.ResourceVersion()[1:], "the cache has no version")
		require.NoError(t, j.cache.Replace(store.Items(stored("a", 3)), store.At("7")))
		j.journal.Step(t.Context(), 0)
		require.NoError(t, j.journal.Status().Err)
		j.journal.Abandon()
		require.Equal(t, "7", openJournal(t, filepath.Dir(path)).journal.Status().Restored, why)
	}
}

// TestAJournalOfDocuments: objects without a Go type, and metadata with one, come back as they
// were.
func TestAJournalOfDocuments(t *testing.T) {
	document := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "namespace": "ns", "uid": "u", "resourceVersion": "5"},
		"spec":     map[string]any{"whole": int64(1) << 60, "part": 1.5, "list": []any{"a", true, nil}},
	}}
	requireSame(t, watchcache.Kind[*unstructured.Unstructured]{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget"}, document)
	requireSame(t, watchcache.Kind[*metav1.PartialObjectMetadata]{Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget"},
		&metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
			ObjectMeta: metav1.ObjectMeta{Name: "w", Namespace: "ns", UID: "u", ResourceVersion: "5"},
		})
	requireSame(t, watchcache.Pods(), stored("a", 5))
}

func requireSame[T store.Object](t *testing.T, kind watchcache.Kind[T], obj T) {
	folder := t.TempDir()
	for range 2 {
		c, err := watchcache.NewCache(kind)
		require.NoError(t, err)
		j, err := watchcache.OpenJournal(c, folder, identity)
		require.NoError(t, err)
		if held, ok := c.Snapshot().Get(store.KeyOf(obj)); ok {
			require.Equal(t, obj, held)
			return
		}
		require.NoError(t, c.Replace(store.Items(obj), store.At("5")))
		j.Step(t.Context(), 0)
		j.Abandon()
		require.NoError(t, j.Status().Err)
	}
	t.Fatal("nothing was restored")
}

// TestAnotherHistoryEndsTheJournal: a state of a server that went back is no continuation.
func TestAnotherHistoryEndsTheJournal(t *testing.T) {
	folder := t.TempDir()
	j := openJournal(t, folder)
	require.NoError(t, j.cache.Replace(store.Items(stored("a", 3)), store.At("50")))
	j.journal.Step(t.Context(), 1<<20)
	require.NoError(t, j.cache.Replace(store.Items(stored("b", 4)), store.At("40")))
	j.journal.Step(t.Context(), 1<<20)
	require.NoError(t, j.journal.Status().Err)
	j.journal.Abandon()
	again := openJournal(t, folder)
	require.Equal(t, "40", again.journal.Status().Restored)
	require.Equal(t, states(j.cache), states(again.cache))
	start(t, again.cache.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "39"})).RequireExpired()
}

func TestOpenJournalNamesItsMistakes(t *testing.T) {
	folder := t.TempDir()
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	_, err := watchcache.OpenJournal(c, folder, identity)
	require.ErrorContains(t, err, "the cache is filled already: open the journal first")
	_, err = watchcache.OpenJournal(newCache(t, watchcache.WithRevision(watchcache.NewRevision())), folder, identity)
	require.ErrorContains(t, err, "the cache is an origin")
	file := filepath.Join(folder, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = watchcache.OpenJournal(newCache(t), filepath.Join(file, "below"), identity)
	require.ErrorContains(t, err, "the folder cannot be made")
}

// TestTwoProcessesDoNotWriteOneJournal: the second one waits for the first, and logs the begin and
// the end of that.
func TestTwoProcessesDoNotWriteOneJournal(t *testing.T) {
	folder := t.TempDir()
	var lines []string
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	first, second := openJournal(t, folder), openJournal(t, folder)
	for _, j := range []*journaled{first, second} {
		require.NoError(t, j.cache.Replace(store.Items(stored("a", 3)), store.At("50")))
		j.journal.Step(ctx, 0)
		j.journal.Step(ctx, 0)
	}
	require.NoError(t, first.journal.Status().Err)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "it is in use")
	require.ErrorContains(t, second.journal.Status().Err, "it is in use: give each writer a path of its own")
	first.journal.Abandon()
	second.journal.Step(ctx, 0)
	require.NoError(t, second.journal.Status().Err)
	require.Len(t, lines, 2)
	require.Contains(t, lines[1], "written again")
	second.journal.Abandon()
}

// FuzzJournal: no file makes the reader panic, and one that is not used leaves an empty cache.
func FuzzJournal(f *testing.F) {
	file, _ := writtenJournal(f)
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Fuzz(func(t *testing.T, file []byte) {
		j := reopen(t, t.TempDir(), watchcache.Seal(file))
		s := j.journal.Status()
		require.Equal(t, s.Unused == nil, s.Restored != "")
		if s.Unused != nil {
			require.Empty(t, states(j.cache))
		}
	})
}

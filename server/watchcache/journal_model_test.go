package watchcache_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// write is one write to a cache, after which it has reached a version.
type write struct {
	version int
	skipped bool // the versions before it
	do      func(*watchcache.Cache[*corev1.Pod]) error
}

// writer makes random writes.
type writer struct {
	random  *rand.Rand
	pods    map[string]*corev1.Pod
	version int
}

func (w *writer) next() write {
	w.version += 2 + w.random.IntN(3) // a deletion may be told in between
	p := randomPod(w.random, 12, w.version)
	labelled("app", strconv.Itoa(w.random.IntN(2)))(p)
	onNode(fmt.Sprintf("n%d", w.random.IntN(3)))(p)
	switch w.random.IntN(16) {
	case 0, 1, 2:
		delete(w.pods, store.KeyOf(p))
		return w.write(func(c *watchcache.Cache[*corev1.Pod]) error { return c.Delete(p) })
	case 3:
		return w.relist(p)
	case 4:
		at := strconv.Itoa(w.version)
		return w.write(func(c *watchcache.Cache[*corev1.Pod]) error { return c.Bookmark(at) })
	case 5, 6:
		w.pods[store.KeyOf(p)] = p
		return w.write(func(c *watchcache.Cache[*corev1.Pod]) error { return c.PutSized(p, 300) })
	}
	w.pods[store.KeyOf(p)] = p
	return w.write(func(c *watchcache.Cache[*corev1.Pod]) error { return c.Update(p) })
}

func (w *writer) write(do func(*watchcache.Cache[*corev1.Pod]) error) write {
	return write{version: w.version, do: do}
}

// relist replaces the content: some objects are gone, one is new, the others are decoded anew.
func (w *writer) relist(p *corev1.Pod) write {
	w.version += w.random.IntN(4)
	switch w.random.IntN(3) {
	case 0:
		w.pods[store.KeyOf(p)] = p
	case 1:
		for _, key := range slices.Sorted(maps.Keys(w.pods)) {
			if w.random.IntN(6) == 0 {
				delete(w.pods, key)
			}
		}
	}
	var items []*corev1.Pod
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		items = append(items, w.pods[key].DeepCopy())
	}
	at := strconv.Itoa(w.version)
	relisted := w.write(func(c *watchcache.Cache[*corev1.Pod]) error { return c.Replace(store.Items(items...), store.At(at)) })
	relisted.skipped = true
	return relisted
}

// positions are the versions that clients may have.
func positions(writes []write) (all []int) {
	for _, w := range writes {
		if w.skipped && len(all) > 0 {
			all = append(all, w.version-1)
		}
		all = append(all, w.version)
	}
	return all
}

// reader is a watch with what it was told, event by event, with the content of the objects.
type reader struct {
	*watchcache.Watcher[*corev1.Pod]
	selection, from int
	lines           []string
	parked          atomic.Bool
	over            bool
}

// read reads what there is now.
func (r *reader) read(t *testing.T) {
	for !r.over && !r.parked.Load() {
		r.parked.Store(true)
		events, waits, err := r.Poll(t.Context(), func() { r.parked.Store(false) })
		if waits {
			return
		}
		r.parked.Store(false)
		for _, e := range events {
			r.lines = append(r.lines, fmt.Sprintf("%s %s/%s@%s %s %s %s", e.Type, e.Object.Namespace, e.Object.Name, e.ResourceVersion,
				e.Object.UID, e.Object.Labels["app"], e.Object.Spec.NodeName))
		}
		if r.over = err != nil; r.over {
			r.lines = append(r.lines, "410")
		}
	}
}

// heard is what a watch from a version is told now.
func heard(t *testing.T, c *watchcache.Cache[*corev1.Pod], options metav1.ListOptions, from int) []string {
	w, err := watchFrom(c, options, from)
	if err != nil {
		return []string{"410"}
	}
	r := &reader{Watcher: w}
	r.read(t)
	w.Close()
	return r.lines
}

func watchFrom(c *watchcache.Cache[*corev1.Pod], options metav1.ListOptions, version int) (*watchcache.Watcher[*corev1.Pod], error) {
	r, err := watchcache.RequestOf(options)
	if err != nil {
		return nil, err
	}
	r.ResourceVersion = strconv.Itoa(version)
	return c.Watcher(r)
}

// TestAJournalIsTheHistory makes random writes, kills the process at any byte of the journal, and
// lets another one restore it and go on. Watches from every version are told there what one process
// would have told them that has never ended; those from a version that was not in the file yet wait
// for the later writes.
func TestAJournalIsTheHistory(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 4))
	restored, torn := 0, 0
	for range 12 {
		kills := journalRun(t, random)
		restored += kills.restored
		torn += kills.torn
	}
	require.Greater(t, restored, 20)
	require.NotZero(t, torn)
}

type kills struct{ restored, torn int }

func journalRun(t *testing.T, random *rand.Rand) (n kills) {
	truth := newCache(t) // all writes, in one process
	w := &writer{random: random, pods: map[string]*corev1.Pod{}, version: 1}
	folder := t.TempDir()
	window := []int{32, 100, 1000}[random.IntN(3)]
	now := openJournal(t, folder, watchcache.WithWindow(window))
	first := w.relist(stored("a", 1))
	writes := []write{first}
	require.NoError(t, first.do(truth))
	require.NoError(t, first.do(now.cache))
	for range 5 {
		for range random.IntN(120) {
			next := w.next()
			writes = append(writes, next)
			require.NoError(t, next.do(truth))
			require.NoError(t, next.do(now.cache))
			if random.IntN(50) == 0 {
				now.cache.Compact()
			}
			if random.IntN(4) == 0 {
				now.journal.Step(t.Context(), 2000)
				require.NoError(t, now.journal.Status().Err)
			}
		}
		now.journal.Abandon()
		file, err := os.ReadFile(now.journal.Status().Path)
		if os.IsNotExist(err) { // the cache was compacted, and nothing was written since
			file = nil
		} else {
			require.NoError(t, err)
		}
		if random.IntN(4) > 0 {
			file = file[:len(file)-min(len(file), random.IntN(3000))]
			n.torn++
		}
		folder = t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(folder, "pods.v1.journal"), file, 0o600))
		now = openJournal(t, folder, watchcache.WithWindow(window))
		if now.journal.Status().Restored == "" {
			require.ErrorContains(t, now.journal.Status().Unused, "is not used")
			require.NoError(t, writes[0].do(now.cache))
			goOnFrom(t, now, truth, writes, writes[0].version)
			continue
		}
		n.restored++
		version, err := strconv.Atoi(now.journal.Status().Restored)
		require.NoError(t, err)
		goOnFrom(t, now, truth, writes, version)
	}
	now.journal.Abandon()
	return n
}

// goOnFrom makes the writes after a version to a cache that was restored, and compares what its
// watches are told with the truth.
func goOnFrom(t *testing.T, now *journaled, truth *watchcache.Cache[*corev1.Pod], writes []write, version int) {
	require.Equal(t, strconv.Itoa(version), now.cache.ResourceVersion())
	all := positions(writes)
	var ahead []*reader // clients that have seen more than the file has
	later := all[sort.SearchInts(all, version):]
	for n := 0; n < len(later); n += 1 + len(later)/8 {
		from := later[n]
		for i, s := range selections {
			w, err := watchFrom(now.cache, s.options, from)
			require.NoError(t, err)
			ahead = append(ahead, &reader{Watcher: w, selection: i, from: from})
		}
	}
	for _, r := range ahead {
		r.read(t)
		require.Empty(t, r.lines, "it has seen everything up to %d, and the cache is at %d", r.from, version)
	}
	for _, next := range writes {
		if next.version > version {
			require.NoError(t, next.do(now.cache))
			for _, r := range ahead {
				r.read(t)
			}
		}
	}
	require.Equal(t, truth.ResourceVersion(), now.cache.ResourceVersion())
	require.Equal(t, states(truth), states(now.cache))
	for _, r := range ahead {
		r.Close()
		compareHeard(t, truth, selections[r.selection].options, r.from, r.lines)
	}
	floor := int(now.cache.Floor())
	for _, from := range all {
		s := selections[from%len(selections)]
		got := heard(t, now.cache, s.options, from)
		if from < floor {
			require.Equal(t, []string{"410"}, got)
			continue
		}
		compareHeard(t, truth, s.options, from, got)
	}
}

func compareHeard(t *testing.T, truth *watchcache.Cache[*corev1.Pod], options metav1.ListOptions, from int, got []string) {
	t.Helper()
	require.Equal(t, heard(t, truth, options, from), got, "from %d, of %q %q", from, options.FieldSelector, options.LabelSelector)
}

// states are the objects of a cache, by key.
func states(c *watchcache.Cache[*corev1.Pod]) map[string]string {
	all := map[string]string{}
	for key, p := range c.Snapshot().All() {
		all[key] = fmt.Sprint(p.UID, "@", p.ResourceVersion)
	}
	return all
}

package watchcache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// kinds are selections, said twice.
var kinds = []struct {
	options metav1.ListOptions
	keeps   func(*corev1.Pod) bool
}{
	{metav1.ListOptions{}, func(*corev1.Pod) bool { return true }},
	{metav1.ListOptions{FieldSelector: "spec.nodeName!=n0"}, func(p *corev1.Pod) bool { return p.Spec.NodeName != "n0" }},
	{metav1.ListOptions{LabelSelector: "app in (0,1)"}, func(p *corev1.Pod) bool { return p.Labels["app"] < "2" }},
	{metav1.ListOptions{FieldSelector: "spec.nodeName=n1"}, func(p *corev1.Pod) bool { return p.Spec.NodeName == "n1" }},
	{metav1.ListOptions{FieldSelector: "status.phase=Running"}, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }},
	{metav1.ListOptions{FieldSelector: "metadata.namespace=other"}, func(p *corev1.Pod) bool { return p.Namespace == "other" }},
	{metav1.ListOptions{FieldSelector: "metadata.name=pod-1"}, func(p *corev1.Pod) bool { return p.Name == "pod-1" }},
	{
		metav1.ListOptions{FieldSelector: "metadata.name=pod-2,metadata.namespace=ns"},
		func(p *corev1.Pod) bool { return p.Name == "pod-2" && p.Namespace == "ns" },
	},
	{metav1.ListOptions{LabelSelector: "app=1"}, func(p *corev1.Pod) bool { return p.Labels["app"] == "1" }},
	{
		metav1.ListOptions{LabelSelector: "app=2,tier!=back", FieldSelector: "spec.nodeName=n2,metadata.namespace=ns"},
		func(p *corev1.Pod) bool {
			return p.Labels["app"] == "2" && p.Labels["tier"] != "back" && p.Spec.NodeName == "n2" && p.Namespace == "ns"
		},
	},
}

// told is one event of the model: to whom it matters is for each selection to say.
type told struct {
	old, now *corev1.Pod
	version  int
	gap      *skipped // of a relist
}

// skipped is what a relist did not see: the time between two versions.
type skipped struct{ before, to int }

// line is the event that a selection sees of it, if it sees any.
func (e told) line(keeps func(*corev1.Pod) bool) (string, bool) {
	was, is := e.old != nil && keeps(e.old), e.now != nil && keeps(e.now)
	switch {
	case was && is:
		return fmt.Sprintf("MODIFIED %s@%s", e.now.Name, e.now.ResourceVersion), true
	case is:
		return fmt.Sprintf("ADDED %s@%s", e.now.Name, e.now.ResourceVersion), true
	case was:
		return fmt.Sprintf("DELETED %s@%d", e.old.Name, e.version), true
	}
	return "", false
}

// follower is a watcher in a goroutine of its own, which offers one event at a time, and waits for
// the next by Next or by Poll.
type follower struct {
	kind   int
	pace   int // it takes events once in so many steps
	events <-chan string
	stop   context.CancelFunc
	want   []string // what it has still to be told
	robbed bool     // the history was compacted before it had read all
}

// history is a cache with all that ever happened in it.
type history struct {
	t         *testing.T
	random    *rand.Rand
	cache     *watchcache.Cache[*corev1.Pod]
	pods      map[string]*corev1.Pod
	changes   []told
	version   int
	floor     int // of the last compaction: no watch may start before it
	followers []*follower
	cut       int
}

const modelWindow = 12

// TestStreamsAreTheHistory makes random writes under watchers of every selection and pace, that
// start late and stop early. Each is told what filtering the whole history would tell it, in order,
// without a gap and nothing twice; one that is cut was behind by more changes of its own selection
// than the window holds.
func TestStreamsAreTheHistory(t *testing.T) {
	for range 2 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			t.Logf("seed %d", seed)
			h := &history{
				t: t, random: rand.New(rand.NewPCG(seed, 5)), pods: map[string]*corev1.Pod{}, version: 1, floor: 1,
				cache: newCache(t, watchcache.WithWindow(modelWindow)),
			}
			require.NoError(t, h.cache.Replace(store.Items[*corev1.Pod](), store.At("1")))
			for range 700 {
				h.step()
			}
			for len(h.followers) > 0 {
				h.end(0)
			}
			synctest.Wait()
			held := watchcache.HeldBy(h.cache)
			require.Zero(t, held.Triggers+held.Members+held.Backlogged+int(held.Kept), "%+v", held)
			require.NotZero(t, h.cut, "no watcher was slow enough to matter")
		})
	}
}

func (h *history) step() {
	for range 1 + h.random.IntN(3) {
		h.write()
	}
	synctest.Wait()
	switch {
	case len(h.followers) < 30:
		h.follow()
	case h.random.IntN(10) == 0:
		h.end(h.random.IntN(len(h.followers)))
	}
	synctest.Wait()
	for i := 0; i < len(h.followers); i++ {
		if f := h.followers[i]; h.random.IntN(f.pace) == 0 && !h.read(f) {
			h.followers = append(h.followers[:i], h.followers[i+1:]...)
			i--
		}
	}
}

// read takes everything that the follower has been told by now. It is false once that was a 410.
func (h *history) read(f *follower) bool {
	for {
		synctest.Wait()
		select {
		case line := <-f.events:
			if line == "410" && len(f.want) > 0 && f.want[0] == line {
				f.stop()
				return false
			}
			if line == "410" {
				h.cut++
				if !f.robbed {
					require.Greater(h.t, len(f.want), modelWindow, "%s was cut", kinds[f.kind].options.String())
				}
				f.stop()
				return false
			}
			require.NotEmpty(h.t, f.want, "%s: nothing was to be told, but %s", kinds[f.kind].options.String(), line)
			require.Equal(h.t, f.want[0], line, kinds[f.kind].options.String())
			f.want = f.want[1:]
		default:
			require.Empty(h.t, f.want, "%s was not told", kinds[f.kind].options.String())
			f.robbed = false
			return true
		}
	}
}

// follow starts a watcher, at the present or some changes back.
func (h *history) follow() {
	f := &follower{kind: h.random.IntN(len(kinds)), pace: []int{1, 1, 5, 40, 200}[h.random.IntN(5)]}
	back := min(h.random.IntN(modelWindow/2), len(h.changes))
	from := h.version
	if back > 0 {
		from = max(h.floor, h.changes[len(h.changes)-back].version)
	}
	for rest := h.changes; len(rest) > 0; {
		n, gap := 1, rest[0].gap
		for gap != nil && n < len(rest) && rest[n].gap == gap {
			n++
		}
		switch now := rest[:n]; {
		case gap != nil && from > gap.before && from < gap.to:
			f.want = append(f.want, "410")
		case gap != nil && from <= gap.before, gap == nil && now[0].version > from:
			h.expect(f, now...)
		default:
			for _, e := range now {
				if e.version > from {
					h.expect(f, e)
				}
			}
		}
		rest = rest[n:]
	}
	options := kinds[f.kind].options
	options.ResourceVersion = strconv.Itoa(from)
	ctx, stop := context.WithCancel(h.t.Context())
	f.stop = stop
	if h.random.IntN(2) == 0 {
		f.events = polls(ctx, h.cache, options)
	} else {
		f.events = follows(ctx, h.cache, options)
	}
	h.followers = append(h.followers, f)
}

func (h *history) end(i int) {
	h.followers[i].stop()
	h.followers = append(h.followers[:i], h.followers[i+1:]...)
}

// expect has a follower be told of a change, or of those of one relist. If it loses an object in a
// relist, and that is not all, it is cut.
func (h *history) expect(f *follower, changes ...told) {
	var lines []string
	loses := false
	for _, e := range changes {
		if line, seen := e.line(kinds[f.kind].keeps); seen {
			lines = append(lines, line)
			loses = loses || e.gap != nil && strings.HasPrefix(line, "DELETED")
		}
	}
	if loses && len(lines) > 1 {
		lines = slices.Repeat([]string{"410"}, len(lines))
	}
	f.want = append(f.want, lines...)
}

// note tells the model of a change, or of those of one relist.
func (h *history) note(changes ...told) {
	h.changes = append(h.changes, changes...)
	for _, f := range h.followers {
		h.expect(f, changes...)
	}
}

// write makes one random write.
func (h *history) write() {
	h.version++
	p := randomPod(h.random, 6, h.version)
	labelled("app", strconv.Itoa(h.random.IntN(4)))(p)
	if h.random.IntN(2) == 0 {
		labelled("tier", []string{"front", "back"}[h.random.IntN(2)])(p)
	}
	onNode(fmt.Sprintf("n%d", h.random.IntN(4)))(p)
	p.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning}[h.random.IntN(2)]
	key := store.KeyOf(p)
	old := h.pods[key]
	switch h.random.IntN(40) {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		require.NoError(h.t, h.cache.Delete(p))
		delete(h.pods, key)
		if old != nil {
			h.note(told{old: old, version: h.version})
		}
	case 8:
		h.relist(p)
	case 9:
		synctest.Wait()
		h.cache.Compact()
		h.floor = h.version - 1
		h.version--
		for _, f := range h.followers {
			f.robbed = f.robbed || len(f.want) > 0
		}
	default:
		require.NoError(h.t, h.cache.Update(p))
		for _, e := range h.replaced(old, p) {
			h.note(e)
		}
	}
}

// replaced are the changes when one object takes the place of another.
func (h *history) replaced(old, p *corev1.Pod) (changes []told) {
	h.pods[store.KeyOf(p)] = p
	if old != nil && old.UID != p.UID {
		changes = append(changes, told{old: old, version: h.version - 1})
		old = nil
	}
	return append(changes, told{old: old, now: p, version: h.version})
}

// relist replaces the content: one object is new or has changed, and one is gone.
func (h *history) relist(p *corev1.Pod) {
	gap := &skipped{h.version - 1, h.version + 1}
	changes := h.replaced(h.pods[store.KeyOf(p)], p)
	h.version++
	for key, held := range h.pods {
		if held != p {
			delete(h.pods, key)
			changes = append(changes, told{old: held, version: h.version})
			break
		}
	}
	for i := range changes {
		changes[i].gap, changes[i].version = gap, max(changes[i].version, gap.before+1)
	}
	h.note(changes...)
	var items []*corev1.Pod
	for _, held := range h.pods {
		items = append(items, held)
	}
	require.NoError(h.t, h.cache.Replace(store.Items(items...), store.At(strconv.Itoa(h.version))))
}

package watchcache_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// TestClientsMoveBetweenCaches has clients keep a copy by watches on three caches of one truth. The
// caches follow it by events and by relists, each for itself. Each watch is cut off anywhere, also
// within what a relist tells, and the next one may be on another cache. In the end every copy is
// the truth. In the first round one cache has 100,000 other watchers.
func TestClientsMoveBetweenCaches(t *testing.T) {
	for round := range 20 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			truth := newTruth(t, random)
			if round == 0 {
				crowd(t, truth.caches[0])
			}
			var movers []*mover
			for _, kind := range kinds {
				movers = append(movers, &mover{options: kind.options, keeps: kind.keeps, version: "1", copy: map[string]string{}})
			}
			for range 60 {
				for range random.IntN(6) {
					truth.write()
				}
				if i := random.IntN(len(truth.caches)); random.IntN(3) == 0 {
					truth.relist(i)
				} else {
					truth.follow(i)
				}
				for _, m := range movers {
					m.visit(t, truth.caches[random.IntN(len(truth.caches))], random.IntN(4))
				}
			}
			lists := 0
			for i := range truth.caches {
				truth.follow(i)
			}
			for _, m := range movers {
				m.visit(t, truth.caches[0], 1_000_000)
				require.Equal(t, truth.seenBy(m.keeps), m.copy, "seed %d: %s", seed, m.options.String())
				lists += m.lists
			}
			require.Less(t, lists, 60*len(movers)/4, "seed %d: most gaps are told", seed)
		})
	}
}

// truth is a collection that the caches follow.
type truth struct {
	t       *testing.T
	random  *rand.Rand
	pods    map[string]*corev1.Pod
	version int
	caches  []*watchcache.Cache[*corev1.Pod]
	behind  [][]func(*watchcache.Cache[*corev1.Pod]) error // what each cache has not heard of
}

func newTruth(t *testing.T, random *rand.Rand) *truth {
	h := &truth{t: t, random: random, pods: map[string]*corev1.Pod{}, version: 1}
	for range 3 {
		c := newCache(t)
		require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
		h.caches, h.behind = append(h.caches, c), append(h.behind, nil)
	}
	return h
}

func (h *truth) write() {
	p := randomPod(h.random, 3, h.version+1)
	labelled("app", strconv.Itoa(h.random.IntN(4)))(p)
	onNode([]string{"n0", "n1", "n2"}[h.random.IntN(3)])(p)
	p.Status.Phase = []corev1.PodPhase{corev1.PodPending, corev1.PodRunning}[h.random.IntN(2)]
	key := store.KeyOf(p)
	old, there := h.pods[key]
	change := func(c *watchcache.Cache[*corev1.Pod]) error { return c.Update(p) }
	switch {
	case there && (old.UID != p.UID || h.random.IntN(2) == 0): // a name is freed before it is taken
		delete(h.pods, key)
		change = func(c *watchcache.Cache[*corev1.Pod]) error { return c.Delete(p) }
	default:
		h.pods[key] = p
	}
	h.version++
	for i := range h.behind {
		h.behind[i] = append(h.behind[i], change)
	}
}

// follow has a cache hear of all that it has missed, event by event.
func (h *truth) follow(i int) {
	for _, change := range h.behind[i] {
		require.NoError(h.t, change(h.caches[i]))
	}
	h.behind[i] = nil
}

// relist has a cache list the present.
func (h *truth) relist(i int) {
	var items []*corev1.Pod
	for _, p := range h.pods {
		items = append(items, p)
	}
	require.NoError(h.t, h.caches[i].Replace(store.Items(items...), store.At(strconv.Itoa(h.version))))
	h.behind[i] = nil
}

func (h *truth) seenBy(keeps func(*corev1.Pod) bool) map[string]string {
	seen := map[string]string{}
	for key, p := range h.pods {
		if keeps(p) {
			seen[key] = p.ResourceVersion
		}
	}
	return seen
}

// mover is a client that keeps a copy by watches on any of the caches.
type mover struct {
	options metav1.ListOptions
	keeps   func(*corev1.Pod) bool
	version string
	copy    map[string]string // the version of each object
	lists   int
}

// visit watches a cache until so many events have come, or nothing more comes.
func (m *mover) visit(t *testing.T, c *watchcache.Cache[*corev1.Pod], enough int) {
	options := m.options
	options.ResourceVersion, options.TimeoutSeconds = m.version, ptr.To[int64](1)
	for e, err := range c.Watch(t.Context(), options) {
		if apierrors.IsResourceExpired(err) {
			m.list(t, c)
			return
		}
		require.NoError(t, err)
		if enough--; enough < 0 {
			return
		}
		m.version = e.ResourceVersion
		delete(m.copy, store.KeyOf(e.Object))
		if e.Type != watch.Deleted {
			m.copy[store.KeyOf(e.Object)] = e.Object.ResourceVersion
		}
	}
}

// list begins anew, if the cache has come as far as the client. Otherwise the client keeps what it
// has and tries again later.
func (m *mover) list(t *testing.T, c *watchcache.Cache[*corev1.Pod]) {
	options := m.options
	options.ResourceVersion = m.version
	list := c.List(t.Context(), options)
	now := map[string]string{}
	for obj, err := range list.Items {
		if apierrors.IsTimeout(err) {
			return
		}
		require.NoError(t, err)
		now[store.KeyOf(obj)] = obj.ResourceVersion
	}
	m.copy, m.version = now, list.Meta().ResourceVersion
	m.lists++
}

package watchcache_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/server/internal/cachetest"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// selections are what watchers of the model keep, said twice. All of them keep the sentinel.
var selections = []struct {
	options metav1.ListOptions
	keeps   func(*corev1.Pod) bool
}{
	{metav1.ListOptions{}, func(*corev1.Pod) bool { return true }},
	{metav1.ListOptions{FieldSelector: "metadata.namespace=ns"}, func(p *corev1.Pod) bool { return p.Namespace == "ns" }},
	{metav1.ListOptions{LabelSelector: "app=1"}, func(p *corev1.Pod) bool { return p.Labels["app"] == "1" }},
	{metav1.ListOptions{FieldSelector: "spec.nodeName=n1"}, func(p *corev1.Pod) bool { return p.Spec.NodeName == "n1" }},
	{
		metav1.ListOptions{FieldSelector: "metadata.namespace=ns,spec.nodeName!=n0"},
		func(p *corev1.Pod) bool { return p.Namespace == "ns" && p.Spec.NodeName != "n0" },
	},
}

// replica is a watcher with the state that its events add up to.
type replica struct {
	*cachetest.Follow
	selection int
	rest      int // it reads once in so many steps
	held      map[string]string
}

// model is a cache beside the plain map that it must agree with.
type model struct {
	t       *testing.T
	random  *rand.Rand
	cache   *watchcache.Cache[*corev1.Pod]
	pods    map[string]*corev1.Pod
	version int
	expired int
}

// TestWatchersReplicateTheState makes random writes under watchers of every selection and pace:
// what each has seen adds up to what its selection keeps of the state, or it was told that it has
// lost its place.
func TestWatchersReplicateTheState(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &model{
		t: t, random: rand.New(rand.NewPCG(seed, 3)), pods: map[string]*corev1.Pod{}, version: 1,
		cache: newCache(t, watchcache.WithWindow(16)),
	}
	require.NoError(t, m.cache.Replace(store.Items[*corev1.Pod](), store.At("1")))
	var replicas []*replica
	for i := range 20 {
		replicas = append(replicas, &replica{selection: i % len(selections), rest: []int{1, 3, 8, 30}[i%4]})
	}
	for range 1000 {
		m.write()
		m.writeSentinel()
		for _, r := range replicas {
			if m.random.IntN(r.rest) == 0 {
				m.catchUp(r)
			}
		}
	}
	require.NotZero(t, m.expired, "no watcher was slow enough to matter")
}

func (m *model) put(p *corev1.Pod) {
	require.NoError(m.t, m.cache.Update(p))
	m.pods[store.KeyOf(p)] = p
}

// randomPod is a pod of one of so many names, at a version.
func randomPod(random *rand.Rand, names, version int) *corev1.Pod {
	p := stored(fmt.Sprintf("pod-%d", random.IntN(names)), version)
	p.Namespace = []string{"ns", "other"}[random.IntN(2)]
	p.UID += types.UID(fmt.Sprint(random.IntN(7) / 6)) // sometimes another object of that name
	return p
}

// write makes one random write.
func (m *model) write() {
	m.version++
	p := randomPod(m.random, 12, m.version)
	labelled("app", strconv.Itoa(m.random.IntN(2)))(p)
	onNode(fmt.Sprintf("n%d", m.random.IntN(3)))(p)
	switch m.random.IntN(12) {
	case 0, 1, 2:
		require.NoError(m.t, m.cache.Delete(p))
		delete(m.pods, store.KeyOf(p))
	case 3:
		m.relist(p)
	default:
		m.put(p)
	}
}

// relist replaces the content: a few objects are gone, one is new, the others are decoded anew.
func (m *model) relist(p *corev1.Pod) {
	m.pods[store.KeyOf(p)] = p
	var items []*corev1.Pod
	for key, held := range m.pods {
		if held != p && m.random.IntN(6) == 0 {
			delete(m.pods, key)
			continue
		}
		items = append(items, held.DeepCopy())
	}
	require.NoError(m.t, m.cache.Replace(store.Items(items...), store.At(strconv.Itoa(m.version))))
}

// writeSentinel writes the object by which a watcher knows that it has seen everything.
func (m *model) writeSentinel() {
	m.version++
	p := stored("sentinel", m.version)
	labelled("app", "1")(p)
	onNode("n1")(p)
	m.put(p)
}

// catchUp reads until the sentinel and compares; a watcher that has expired starts again.
func (m *model) catchUp(r *replica) {
	if r.Follow == nil || !m.read(r) {
		m.restart(r)
		require.True(m.t, m.read(r), "a watcher that has just started")
	}
	want := map[string]string{}
	for key, p := range m.pods {
		if selections[r.selection].keeps(p) {
			want[key] = p.ResourceVersion
		}
	}
	require.Equal(m.t, want, r.held)
}

func (m *model) restart(r *replica) {
	r.Follow = start(m.t, m.cache.Watch(m.t.Context(), selections[r.selection].options))
	r.held = map[string]string{}
}

// read applies events up to the newest sentinel; false means that the watcher has expired.
func (m *model) read(r *replica) bool {
	for r.held["ns/sentinel"] != strconv.Itoa(m.version) {
		e, err, ok := r.Pull()
		require.True(m.t, ok)
		if apierrors.IsResourceExpired(err) {
			m.expired++
			return false
		}
		require.NoError(m.t, err)
		key := store.KeyOf(e.Object)
		_, had := r.held[key]
		switch e.Type {
		case watch.Added:
			require.False(m.t, had, "added twice: %s", seen(e))
		case watch.Modified, watch.Deleted:
			require.True(m.t, had, "unknown: %s", seen(e))
		}
		r.held[key] = e.Object.ResourceVersion
		if e.Type == watch.Deleted {
			delete(r.held, key)
			require.Equal(m.t, e.ResourceVersion, e.Object.ResourceVersion)
		}
	}
	// Initial events come in the order of names: the sentinel is not always the last.
	for len(r.held) < m.kept(r.selection) {
		e, err, ok := r.Pull()
		require.NoError(m.t, err)
		require.True(m.t, ok)
		r.held[store.KeyOf(e.Object)] = e.Object.ResourceVersion
	}
	return true
}

func (m *model) kept(selection int) (n int) {
	for _, p := range m.pods {
		if selections[selection].keeps(p) {
			n++
		}
	}
	return n
}

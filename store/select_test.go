package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/store"
)

func ExampleSnapshot_Select() {
	pods := store.NewIndexer(store.ByNamespace[*corev1.Pod](), store.ByLabel[*corev1.Pod]("app"))
	for _, name := range []string{"web", "api"} {
		_ = pods.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name + "-0", Labels: map[string]string{"app": name, "tier": "front"},
		}})
	}
	now := pods.Snapshot()
	selector, _ := labels.Parse("app=web, tier!=back")
	for pod := range now.Select("shop", selector) { // looks at the pods with app=web alone
		fmt.Println(pod.Name)
	}
	_, err := store.Find(now, "shop", "db-0")
	fmt.Println(err, apierrors.IsNotFound(err))
	// Output:
	// web-0
	// Pod "db-0" not found true
}

// watched counts how often its labels are read.
type watched struct {
	*corev1.Pod
	looks *int
}

func (w *watched) GetLabels() map[string]string { *w.looks++; return w.Pod.GetLabels() }

// TestSelect: with any indexes, random selections agree with a look at every object.
func TestSelect(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	few := func(of string, n int) string { return fmt.Sprint(of, random.IntN(n)) }
	declared := []store.AnyIndex[*corev1.Pod]{
		byNode, store.ByNamespace[*corev1.Pod](), store.ByLabel[*corev1.Pod]("app"), store.ByLabel[*corev1.Pod]("tier"), byVersionDigits,
	}
	for round := range 200 {
		var indexes []store.AnyIndex[*corev1.Pod]
		for _, index := range declared {
			if random.IntN(2) == 0 {
				indexes = append(indexes, index)
			}
		}
		x := store.NewIndexer(indexes...)
		for i := range 60 {
			p := pod(few("p", 40), i+1)
			p.Namespace = few("ns", 4)
			for _, key := range []string{"app", "tier"} {
				if random.IntN(3) > 0 {
					metav1.SetMetaDataLabel(&p.ObjectMeta, key, few("", 4))
				}
			}
			if random.IntN(4) == 0 {
				require.NoError(t, x.Delete(p))
			} else {
				require.NoError(t, x.Add(p))
			}
		}
		now := x.Snapshot()
		for range 30 {
			namespace := few("ns", 5)
			if random.IntN(2) == 0 {
				namespace = ""
			}
			text := []string{"", "app=1", "app in (1,2)", "app=1,tier=2", "app!=1", "app notin (1,2)", "app", "!tier", "tier in (0,3),app", "tier=9", "app=1,app=2"}
			selector, err := labels.Parse(text[random.IntN(len(text))])
			require.NoError(t, err)
			var want []*corev1.Pod
			for _, p := range now.All() {
				if (namespace == "" || p.Namespace == namespace) && selector.Matches(labels.Set(p.Labels)) {
					want = append(want, p)
				}
			}
			found := slices.Collect(now.Select(namespace, selector))
			require.ElementsMatch(t, want, found, "round %d: %q in %q", round, selector, namespace)
			if selector.Empty() {
				require.ElementsMatch(t, want, slices.Collect(now.InNamespace(namespace)))
			}
		}
		require.Empty(t, slices.Collect(now.Select("", labels.Nothing())))
		for p := range now.InNamespace("") {
			require.NotNil(t, p)
			break
		}
	}
	require.Empty(t, slices.Collect(store.Snapshot[*corev1.Pod]{}.InNamespace("ns")))
}

// own is a selector that has no requirements, and asks all the same.
type own struct{ labels.Selector }

func (own) Empty() bool                   { return false }
func (own) Matches(of labels.Labels) bool { return of.Get("app") == "web" }

// TestSelectAsksTheSelector: one of the program's own decides, even without requirements.
func TestSelectAsksTheSelector(t *testing.T) {
	x := store.NewIndexer[*corev1.Pod]()
	for _, app := range []string{"web", "api"} {
		p := pod(app, 1)
		p.Labels = map[string]string{"app": app}
		require.NoError(t, x.Add(p))
	}
	found := slices.Collect(x.Snapshot().Select("", own{labels.Everything()}))
	require.Len(t, found, 1)
	require.Equal(t, "web", found[0].Name)

	// It matches less than its one requirement, of which there is an index.
	x = store.NewIndexer(store.ByLabel[*corev1.Pod]("tier"))
	require.NoError(t, x.Add(pod("db", 1))) // without the label: the index is the smaller part
	for _, app := range []string{"web", "api"} {
		p := pod(app, 1)
		p.Labels = map[string]string{"app": app, "tier": "front"}
		require.NoError(t, x.Add(p))
	}
	found = slices.Collect(x.Snapshot().Select("", own{labels.SelectorFromSet(labels.Set{"tier": "front"})}))
	require.Len(t, found, 1)
	require.Equal(t, "web", found[0].Name)
}

// TestSelectLooksAtFew: an index of the namespace or of a label spares a look at the other objects.
func TestSelectLooksAtFew(t *testing.T) {
	looks := 0
	fill := func(indexes ...store.AnyIndex[*watched]) store.Snapshot[*watched] {
		x := store.NewIndexer(indexes...)
		for i := range 1000 {
			p := pod(fmt.Sprint("p", i), i+1)
			p.Namespace, p.Labels = fmt.Sprint("ns", i%100), map[string]string{"app": fmt.Sprint(i % 50), "tier": fmt.Sprint(i % 2)}
			require.NoError(t, x.Add(&watched{p, &looks}))
		}
		looks = 0
		return x.Snapshot()
	}
	selector, err := labels.Parse("tier=1,app in (1,3)")
	require.NoError(t, err)
	for name, row := range map[string]struct {
		now       store.Snapshot[*watched]
		namespace string
		looks     int
	}{
		"no index":               {fill(), "", 1000},
		"the namespace":          {fill(store.ByNamespace[*watched]()), "ns1", 10},
		"the label":              {fill(store.ByLabel[*watched]("tier"), store.ByLabel[*watched]("app")), "", 40},
		"the smaller of the two": {fill(store.ByLabel[*watched]("app"), store.ByNamespace[*watched]()), "ns1", 10},
	} {
		looks = 0
		for range row.now.Select(row.namespace, selector) {
		}
		require.Equal(t, row.looks, looks, name)
	}
}

// TestFind: the error is that of the API, from a snapshot and from an indexer.
func TestFind(t *testing.T) {
	x := store.NewIndexer[*corev1.Pod]()
	for _, unread := range []interface {
		Get(string) (*corev1.Pod, bool)
	}{x, x.Snapshot(), store.Snapshot[*corev1.Pod]{}} {
		_, err := store.Find(unread, "ns", "a")
		require.ErrorContains(t, err, "ns/a: not read yet")
		require.False(t, apierrors.IsNotFound(err))
	}
	require.NoError(t, x.Add(pod("a", 1)))
	got, err := store.Find(x, "ns", "a")
	require.NoError(t, err)
	require.Equal(t, "a", got.Name)
	for _, namespace := range []string{"", "other"} {
		got, err = store.Find(x.Snapshot(), namespace, "a")
		require.Nil(t, got)
		require.True(t, apierrors.IsNotFound(err))
		require.EqualError(t, err, `Pod "a" not found`)
	}
}

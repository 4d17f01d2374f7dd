package informer_test

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// restore takes all changes after the first ones back, as a backup of the server's data does, and
// ends the watches.
func (s *server) restore(changes int) {
	s.mu.Lock()
	s.history = slices.Clone(s.history[:changes])
	s.pods = map[string]*corev1.Pod{}
	for _, w := range s.history {
		switch pod := w.event.Object; w.event.Type {
		case watch.Added, watch.Modified:
			s.pods[pod.Name] = pod
		case watch.Deleted:
			delete(s.pods, pod.Name)
		}
	}
	s.floor = min(s.floor, changes)
	s.mu.Unlock()
	s.disconnect(false)
}

// of is the server's pods of some names.
func (s *server) of(names ...string) podSource {
	keeps := func(pod *corev1.Pod) bool { return slices.Contains(names, pod.Name) }
	return listwatch.Intercept(s.source(),
		func(_ metav1.ListOptions, list listwatch.List[*corev1.Pod]) listwatch.List[*corev1.Pod] {
			items := list.Items
			list.Items = func(yield func(*corev1.Pod, error) bool) {
				for pod, err := range items {
					if (err != nil || keeps(pod)) && !yield(pod, err) {
						return
					}
				}
			}
			return list
		},
		func(_ metav1.ListOptions, events iter.Seq2[listwatch.Event[*corev1.Pod], error]) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
			return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
				for e, err := range events {
					if (err != nil || e.Type == watch.Bookmark || keeps(e.Object)) && !yield(e, err) {
						return
					}
				}
			}
		})
}

// noWatchLists is a source of the fake server, which does not know watch lists.
type noWatchLists struct{ podSource }

func (noWatchLists) IsWatchListSemanticsUnSupported() bool { return true }

// restoredWorld changes the pods of a union's members at random, takes changes back, and keeps
// members away meanwhile, so that they notice at different moments.
type restoredWorld struct {
	*server
	random  *rand.Rand
	members []*refusable
	newest  int // the newest revision of any history
}

func (w *restoredWorld) change() {
	name := string(rune('a' + w.random.IntN(6)))
	if _, there := w.now()["ns/"+name]; there && w.random.IntN(3) == 0 {
		w.remove(name)
	} else {
		w.put(name)
	}
}

func (w *restoredWorld) revision() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.history)
}

// pass lets the server pass all that the members have. They have to list.
func (w *restoredWorld) pass() {
	for w.revision() <= w.newest {
		w.change()
	}
	w.disconnect(true)
}

func (w *restoredWorld) step() {
	member := w.members[w.random.IntN(len(w.members))]
	switch p := w.random.IntN(100); {
	case p < 3:
		was := w.revision()
		w.newest = max(w.newest, was)
		w.restore(max(1, was-w.random.IntN(20)))
		if w.random.IntN(2) == 0 {
			w.pass()
		}
	case p < 6:
		member.refuse(true)
	case p < 12:
		member.refuse(false)
	case p < 15:
		w.bookmark()
	case p < 17:
		w.disconnect(w.random.IntN(2) == 0)
	default:
		w.change()
	}
}

// restoredSeeds is for the gate. TRIBUTARY_SIM_RUNS says another number.
const restoredSeeds = 20

// TestUnionOfARestoredServer: however the server's data is restored, once the members have listed
// the union has what the server has, and handlers were told of it.
func TestUnionOfARestoredServer(t *testing.T) {
	for form, options := range map[string][]informer.Option{"interned": nil, "packed": {informer.WithStore(packed.New[corev1.Pod])}} {
		t.Run(form, func(t *testing.T) {
			runs := restoredSeeds
			if n, err := strconv.Atoi(os.Getenv("TRIBUTARY_SIM_RUNS")); err == nil {
				runs = n
			}
			for range runs {
				seed := rand.Uint64()
				synctest.Test(t, func(t *testing.T) { unionOfARestoredServer(t, seed, options) })
			}
		})
	}
}

func unionOfARestoredServer(t *testing.T, seed uint64, options []informer.Option) {
	w := &restoredWorld{server: newServer("a", "b", "c", "d"), random: rand.New(rand.NewPCG(seed, 0))}
	u := informer.NewUnion[*corev1.Pod](options...)
	for i, names := range [][]string{{"a", "b", "c"}, {"c", "d", "e"}, {"e", "f", "a"}} {
		w.members = append(w.members, &refusable{podSource: w.of(names...)})
		join(t, u, fmt.Sprint(i), noWatchLists{w.members[i]})
	}
	told := content{}
	add(t, u, func(e podEvent) {
		if delete(told, e.Key); e.Type != informer.Deleted {
			maps.Copy(told, contentOf(slices.Values([]*corev1.Pod{e.New})))
		}
	})
	versions := map[string]string{} // by the metadata handler
	_, err := u.AddMetaHandler(func(e informer.Event[store.Object]) {
		if delete(versions, e.Key); e.Type != informer.Deleted {
			versions[e.Key] = e.New.GetResourceVersion()
		}
	})
	require.NoError(t, err)
	start(t, u)
	for range 150 {
		w.step()
		time.Sleep(time.Duration(w.random.IntN(20_000)) * time.Millisecond) // simulated time
	}
	for _, member := range w.members {
		member.refuse(false)
	}
	w.pass()
	time.Sleep(2 * time.Hour)
	synctest.Wait()
	require.Equal(t, w.now(), contentOf(maps.Values(maps.Collect(u.Snapshot().All()))), "seed %d", seed)
	require.Equal(t, w.now(), told, "seed %d", seed)
	held := map[string]string{}
	for key, pod := range u.Snapshot().All() {
		held[key] = pod.ResourceVersion
	}
	require.Equal(t, held, versions, "seed %d", seed)
	require.NoError(t, u.Ready(3*time.Minute), "seed %d", seed)
	drift, err := u.Verify(t.Context())
	require.NoError(t, err, "seed %d", seed)
	require.Empty(t, drift.Differences, "seed %d", seed)
}

package informer_test

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// TestUnionAtRest: the objects of two namespaces are one collection. Its handlers, of whole
// objects and of metadata, its reads, its waits and its indexes are those of decoded members.
func TestUnionAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		inNamespace := func(name string) *listwatch.ListWatch[*corev1.Pod] {
			return pods.ListerWatcher(listwatch.InNamespace(name), listwatch.WithMutationDetector(nil))
		}
		byApp, byName := store.ByLabel[*corev1.Pod]("app"), store.NewIndex("name", func(p *corev1.Pod) []string { return []string{p.Name} })
		atRest := informer.WithStore(packed.New[corev1.Pod])
		var unions []*podUnion
		var whole [2]recorder
		for i, options := range [][]informer.Option{{}, {atRest}} {
			u := informer.NewUnion[*corev1.Pod](append(options, informer.WithIndexes(byApp))...)
			join(t, u, "a", inNamespace("a"))
			join(t, u, "b", inNamespace("b"))
			add(t, u, whole[i].handle)
			start(t, u)
			require.NoError(t, u.WaitSynced(t.Context()))
			unions = append(unions, u)
		}
		packedUnion := unions[1]
		var meta recorder
		_, err := packedUnion.AddMetaHandler(func(e informer.Event[store.Object]) {
			open := func(obj store.Object) *corev1.Pod {
				if obj == nil {
					return nil
				}
				return packedUnion.Open(obj)
			}
			meta.handle(podEvent{Key: e.Key, Type: e.Type, Initial: e.Initial, Missed: e.Missed, Final: e.Final, Old: open(e.Old), New: open(e.New)})
		})
		require.NoError(t, err)
		pods.Server().AwaitWatches(4)

		labelled := func(namespace, name, app string) *corev1.Pod {
			p := createPod(pods, namespace, name).DeepCopy()
			p.Labels = map[string]string{"app": app}
			return pods.Update(p)
		}
		labelled("a", "x", "web")
		last := labelled("b", "x", "web")
		gone := labelled("b", "y", "db")
		createPod(pods, "c", "x")
		pods.Remove(gone)
		for _, u := range unions {
			require.NoError(t, u.WaitFor(t.Context(), last))
			require.NoError(t, u.WaitForDeletion(t.Context(), gone))
			require.Equal(t, []string{"a/x", "b/x"}, keysOf(u.Snapshot()))
			require.Equal(t, 2, byApp.Len(u.Snapshot(), "web"))
			require.Zero(t, byApp.Len(u.Snapshot(), "db"))
			got, ok := u.Get("b/x")
			require.True(t, ok)
			require.Equal(t, last, got)
		}
		want := whole[0].take()
		require.Len(t, want, 7)
		require.ElementsMatch(t, want, whole[1].take())
		require.ElementsMatch(t, want, meta.take())

		before := packedUnion.Snapshot()
		packedUnion.AddIndexes(byName) // while it runs
		labelled("a", "y", "web")
		synctest.Wait()
		require.Equal(t, 2, byName.Len(packedUnion.Snapshot(), "x"))
		require.Equal(t, 1, byName.Len(packedUnion.Snapshot(), "y"))
		require.Equal(t, 2, before.Len(), "a snapshot stays")
		members := packedUnion.Members()
		require.Equal(t, 2, members[0].Objects)
		require.Equal(t, 1, members[1].Objects)
	})
}

// TestUnionAtRestAdoptsContent: an object that two members have is told once, and so is a content
// that comes under an equal version.
func TestUnionAtRestAdoptsContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a", "b")
		u := informer.NewUnion[*corev1.Pod](informer.WithStore(packed.New[corev1.Pod]))
		one := join(t, u, "one", s)
		join(t, u, "two", s)
		var r recorder
		add(t, u, r.handle)
		start(t, u)
		require.NoError(t, u.WaitSynced(t.Context()))
		require.Len(t, r.take(), 2)
		s.mu.Lock()
		changed := s.pods["a"].DeepCopy()
		changed.Labels = map[string]string{"default": "new"}
		s.pods["a"] = changed // without a new version
		s.mu.Unlock()
		s.put("b")
		s.disconnect(true) // both list anew
		time.Sleep(time.Minute)
		require.ElementsMatch(t, []string{"updated ns/b 2>3 missed", "updated ns/a 1>1 missed"}, r.take())
		got, ok := u.Get("ns/a")
		require.True(t, ok)
		require.Equal(t, changed.Labels, got.Labels)
		one.Remove()
		require.Empty(t, r.take(), "the other has them")
		require.Equal(t, 2, u.Snapshot().Len())
	})
}

// TestUnionAtRestLetsGo: nothing of a deleted object stays in a union whose content was read, and
// is not read again.
func TestUnionAtRestLetsGo(t *testing.T) {
	s := newServer("a", "b")
	u := informer.NewUnion[*corev1.Pod](informer.WithStore(packed.New[corev1.Pod]))
	_, err := u.Add("all", s)
	require.NoError(t, err)
	collected := make(chan string, 1)
	h, err := u.AddMetaHandler(func(e informer.Event[store.Object]) {
		if e.Key == "ns/a" && e.Type == informer.Added {
			runtime.SetFinalizer(e.New, func(entry store.Object) { collected <- entry.GetName() })
		}
	})
	require.NoError(t, err)
	start(t, u)
	require.NoError(t, h.WaitSynced(t.Context()))
	require.Equal(t, 2, u.Snapshot().Len())
	gone := s.remove("a")
	require.NoError(t, u.WaitForDeletion(t.Context(), gone))
	require.Eventually(t, func() bool { // the collector does not signal that it is done
		runtime.GC()
		select {
		case name := <-collected:
			return name == "a"
		default:
			return false
		}
	}, 10*time.Second, time.Millisecond)
	runtime.KeepAlive(u)
}

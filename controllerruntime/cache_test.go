package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/internal/fieldsv1"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

func onNode(obj client.Object) []string { return []string{obj.(*corev1.Pod).Spec.NodeName} }

func byApp(obj client.Object) []string { return []string{obj.GetLabels()["app"]} }

// TestListByIndexes: lists with field selectors agree with a look at every object, in each
// namespace and in all, whether the index came before Start or after.
func TestListByIndexes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		for i := range 40 {
			pods.Create(pod(fmt.Sprint("ns", i%2), fmt.Sprint("p", i%10, "-", i), fmt.Sprint("n", i%3)))
		}
		c := newCache(t, pods, cache.Options{})
		require.NoError(t, c.IndexField(t.Context(), &corev1.Pod{}, "node", onNode))
		start(t, c)
		require.NoError(t, c.IndexField(t.Context(), &corev1.Pod{}, "app", byApp))
		require.ErrorContains(t, c.IndexField(t.Context(), &corev1.Pod{}, "app", byApp), "indexer conflict")
		for _, namespace := range []string{"", "ns0", "ns1", "ns2"} {
			var all corev1.PodList
			require.NoError(t, c.List(t.Context(), &all, client.InNamespace(namespace)))
			for node := range 4 {
				var onNode []string
				for _, p := range all.Items {
					if p.Spec.NodeName == fmt.Sprint("n", node) {
						onNode = append(onNode, p.Namespace+"/"+p.Name)
					}
				}
				selected := client.MatchingFields{"node": fmt.Sprint("n", node)}
				require.ElementsMatch(t, onNode, list(t, c, client.InNamespace(namespace), selected))
				require.Len(t, list(t, c, client.InNamespace(namespace), selected, client.Limit(2)), min(2, len(onNode)))
			}
		}
		require.Equal(t, []string{"ns1/p1-1"}, list(t, c, client.MatchingFields{"node": "n1", "app": "p1-1"}))
		require.Empty(t, list(t, c, client.MatchingFields{"node": "n0", "app": "p1-1"}))
		require.Empty(t, list(t, c, client.InNamespace("ns0"), client.MatchingFields{"app": "p1-1"}))
		require.Equal(t, []string{"ns0/p2-2"}, list(t, c, client.MatchingLabels{"app": "p2-2"}))

		var none corev1.PodList
		require.ErrorContains(t, c.List(t.Context(), &none, client.MatchingFields{"other": "x"}), "add it with IndexField")
		inexact := client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("node", "n1")}
		require.ErrorContains(t, c.List(t.Context(), &none, inexact), "non-exact field matches")
		require.ErrorContains(t, c.List(t.Context(), &none, client.Continue("token")), "continue list option")
	})
}

// TestSelectorsBeforeCopies: a list that selects nothing copies nothing.
func TestSelectorsBeforeCopies(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	for i := range 500 {
		pods.Create(pod("ns", fmt.Sprint("p", i), "n"))
	}
	c := newCache(t, pods, cache.Options{})
	_, err := c.GetInformer(t.Context(), &corev1.Pod{})
	require.NoError(t, err)
	start(t, c)
	selector := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{"app": "none"})}
	var found corev1.PodList
	allocations := testing.AllocsPerRun(5, func() {
		require.NoError(t, c.List(t.Context(), &found, selector))
	})
	require.Less(t, allocations, 100.0, "for 500 objects")
}

// TestListIsOneInstant: a list across two namespaces, one of which lags behind, has all of each
// namespace up to the version that it states, and states the newest one of which that is true.
func TestListIsOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		late := newGate(pods, "/namespaces/b/")
		written := map[string][]int{} // the versions of each pod
		latest := map[string]*corev1.Pod{}
		wrote := func(p *corev1.Pod) {
			version, err := strconv.Atoi(p.ResourceVersion)
			require.NoError(t, err)
			written[p.Namespace] = append(written[p.Namespace], version)
			latest[p.Namespace] = p
		}
		for _, namespace := range []string{"a", "b", "c"} {
			wrote(pods.Create(pod(namespace, "p", "n0")))
		}
		c := newCache(t, pods, cache.Options{DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}}})
		_, err := c.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		start(t, c)
		pods.Server().AwaitWatches(2)
		require.ElementsMatch(t, []string{"a/p", "b/p"}, list(t, c))
		require.Equal(t, []string{"a/p"}, list(t, c, client.InNamespace("a")))

		last := 0
		behind := 0 // the version of b when it was held back; zero while it is not
		for turn := range 40 {
			switch {
			case turn%10 == 3:
				late.shut()
				behind = written["b"][len(written["b"])-1]
			case turn%10 == 8:
				late.unlock()
				behind = 0
			}
			for _, namespace := range []string{"b", "a"} {
				changed := latest[namespace].DeepCopy()
				changed.Labels["turn"] = strconv.Itoa(turn)
				wrote(pods.Update(changed))
			}
			synctest.Wait()
			var found corev1.PodList
			require.NoError(t, c.List(t.Context(), &found))
			complete, err := strconv.Atoi(found.ResourceVersion)
			require.NoError(t, err)
			require.Len(t, found.Items, 2)
			for _, item := range found.Items {
				held, err := strconv.Atoi(item.ResourceVersion)
				require.NoError(t, err)
				for _, version := range written[item.Namespace] {
					require.False(t, held < version && version <= complete, "turn %d: %s/p at %d lacks the write at %d of a list complete up to %d",
						turn, item.Namespace, held, version, complete)
				}
			}
			require.GreaterOrEqual(t, complete, last, "it goes back")
			last = complete
			if behind != 0 {
				require.Equal(t, behind, complete, "turn %d", turn)
			} else { // each namespace has had its last event
				require.Equal(t, written["b"][len(written["b"])-1], complete, "turn %d", turn)
			}
		}
		var got corev1.Pod
		require.ErrorContains(t, c.Get(t.Context(), client.ObjectKey{Namespace: "c", Name: "p"}, &got), `namespace "c"`)
		require.ErrorContains(t, c.List(t.Context(), &corev1.PodList{}, client.InNamespace("c")), `namespace "c"`)
		missing := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "q"}, &got)
		require.True(t, apierrors.IsNotFound(missing), missing)
	})
}

// TestRemovedWhileItSyncs: nobody waits for a collection that is removed before it is synced.
func TestRemovedWhileItSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Mute(listwatchtest.UntilLifted())
		c := newCache(t, pods, cache.Options{})
		_, err := c.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() { _ = c.RemoveInformer(t.Context(), &corev1.Pod{}) })
		start(t, c) // requires that WaitForCacheSync is true
		_, err = c.GetInformer(t.Context(), &corev1.Pod{}, cache.BlockUntilSynced(false))
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.False(t, c.WaitForCacheSync(ctx), "the new one is waited for")
	})
}

// TestClusterScopedInNamespace: a Get of a cluster-scoped object ignores the namespace, and a List
// of one namespace has none, as in controller-runtime's cache.
func TestClusterScopedInNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		nodes := listwatchtest.Serve(pods.Server(), listwatchtest.Of[*corev1.Node]())
		nodes.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"app": "n"}}})
		c := newCache(t, pods, cache.Options{})
		require.NoError(t, c.IndexField(t.Context(), &corev1.Node{}, "app", byApp))
		start(t, c)
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "n"}, &corev1.Node{}))
		for _, row := range []struct {
			options []client.ListOption
			want    int
		}{
			{nil, 1},
			{[]client.ListOption{client.InNamespace("ns")}, 0},
			{[]client.ListOption{client.MatchingFields{"app": "n"}}, 1},
			{[]client.ListOption{client.MatchingFields{"app": "n"}, client.InNamespace("ns")}, 0},
		} {
			var found corev1.NodeList
			require.NoError(t, c.List(t.Context(), &found, row.options...))
			require.Len(t, found.Items, row.want)
		}
	})
}

// TestCopies: readers own what they get, unless they ask for the cache's own objects.
func TestCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		p := pod("ns", "p", "n")
		p.Spec.Containers = []corev1.Container{{Name: "c"}}
		pods.Create(p)
		c := newCache(t, pods, cache.Options{})
		start(t, c)
		key := client.ObjectKey{Namespace: "ns", Name: "p"}
		var owned, again, shared, sharedToo corev1.Pod
		require.NoError(t, c.Get(t.Context(), key, &owned))
		require.Equal(t, "Pod", owned.Kind)
		owned.Labels["app"] = "mine"
		require.NoError(t, c.Get(t.Context(), key, &again))
		require.Equal(t, "p", again.Labels["app"])
		require.NoError(t, c.Get(t.Context(), key, &shared, client.UnsafeDisableDeepCopy))
		require.NoError(t, c.Get(t.Context(), key, &sharedToo, client.UnsafeDisableDeepCopy))
		require.Same(t, &shared.Spec.Containers[0], &sharedToo.Spec.Containers[0])
		var found corev1.PodList
		require.NoError(t, c.List(t.Context(), &found, client.UnsafeDisableDeepCopy))
		require.Same(t, &shared.Spec.Containers[0], &found.Items[0].Spec.Containers[0])
		require.ErrorContains(t, c.Get(t.Context(), key, &strange{}), "no kind")
		require.ErrorContains(t, c.Get(t.Context(), key, &corev1.Binding{}), `no kind "BindingList" is registered`)
	})
}

type strange struct{ corev1.Pod }

// TestAMissingSecondIndex is an error, even if no object has the first field.
func TestAMissingSecondIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, listwatchtest.New(t, listwatchtest.Pods()), cache.Options{})
		require.NoError(t, c.IndexField(t.Context(), &corev1.Pod{}, "node", func(client.Object) []string { return nil }))
		start(t, c)
		err := c.List(t.Context(), &corev1.PodList{}, client.MatchingFields{"node": "n1", "phase": "Running"})
		require.ErrorContains(t, err, "index with name field:phase does not exist for")
	})
}

// TestTransforms: controller-runtime's own transform is done by the decoder, and objects go on
// sharing their parts; any other gets objects that it may modify, which share again what it left as
// it was.
func TestTransforms(t *testing.T) {
	const objects = 200
	read := func(transform toolscache.TransformFunc) (first corev1.Pod, distinct int) {
		synctest.Test(t, func(t *testing.T) {
			pods := listwatchtest.New(t, listwatchtest.Pods())
			for i := range objects {
				p := pod("ns", fmt.Sprint("p", i), "n")
				p.Spec.Containers = []corev1.Container{{Name: "c", Image: "registry/image:1"}}
				p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", FieldsType: "FieldsV1", FieldsV1: fieldsv1.Of("{}")}}
				pods.Create(p)
			}
			c := newCache(t, pods, cache.Options{DefaultTransform: transform})
			start(t, c)
			var all corev1.PodList
			require.NoError(t, c.List(t.Context(), &all, client.UnsafeDisableDeepCopy))
			require.Len(t, all.Items, objects)
			containers := map[*corev1.Container]bool{}
			for i := range all.Items {
				containers[&all.Items[i].Spec.Containers[0]] = true
			}
			first, distinct = all.Items[0], len(containers)
		})
		return first, distinct
	}
	first, distinct := read(nil)
	require.NotEmpty(t, first.ManagedFields)
	require.Less(t, distinct, objects/2)
	first, distinct = read(cache.TransformStripManagedFields())
	require.Empty(t, first.ManagedFields)
	require.Less(t, distinct, objects/2, "the transform has cost the sharing")
	first, distinct = read(func(obj any) (any, error) {
		obj.(*corev1.Pod).Labels["app"] = "changed"
		return obj, nil
	})
	require.Equal(t, "changed", first.Labels["app"])
	require.Less(t, distinct, objects/2, "the transform has cost the sharing of what it left alone")
}

// TestRefusedByTransform: an object that a transform refuses is left out, and the rest comes.
func TestRefusedByTransform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		for _, name := range []string{"a", "refused", "text"} {
			pods.Create(pod("ns", name, "n"))
		}
		c := newCache(t, pods, cache.Options{DefaultTransform: func(obj any) (any, error) {
			switch obj.(*corev1.Pod).Name {
			case "refused":
				return nil, errors.New("not this one")
			case "text":
				return "text", nil
			}
			return obj, nil
		}})
		start(t, c)
		require.Equal(t, []string{"ns/a"}, list(t, c))
		require.Positive(t, c.Status()[0].Skipped)
	})
}

// TestWithoutBookmarks: the watch asks for none, and there is no watch list.
func TestWithoutBookmarks(t *testing.T) {
	for _, bookmarks := range []*bool{nil, ptr.To(true), ptr.To(false)} {
		synctest.Test(t, func(t *testing.T) {
			pods := listwatchtest.New(t, listwatchtest.Pods())
			pods.Create(pod("ns", "p", "n"))
			c := newCache(t, pods, cache.Options{DefaultEnableWatchBookmarks: bookmarks})
			start(t, c)
			require.Len(t, list(t, c), 1)
			pods.Server().AwaitWatches(1)
			asked := pods.Server().AwaitRequests(1, listwatchtest.Watch)[0]
			require.Equal(t, bookmarks == nil || *bookmarks, asked.Options.AllowWatchBookmarks)
			require.Equal(t, bookmarks == nil || *bookmarks, asked.Options.SendInitialEvents != nil)
		})
	}
}

// TestInitialListIsMarked: controller-runtime's priority queue lets what happens now go before the
// initial list.
func TestInitialListIsMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(pod("ns", "early", "n"))
		c := newCache(t, pods, cache.Options{})
		start(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		queue := priorityqueue.New[reconcile.Request]("pods")
		defer queue.ShutDown()
		kind := source.Kind(c, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{})
		require.NoError(t, kind.Start(ctx, queue))
		require.NoError(t, kind.WaitForSync(ctx))
		next := func() (name string, priority int) {
			item, priority, _ := queue.GetWithPriority()
			queue.Done(item)
			return item.Name, priority
		}
		name, priority := next()
		require.Equal(t, "early", name)
		require.Equal(t, handler.LowPriority, priority)
		pods.Create(pod("ns", "late", "n"))
		name, priority = next()
		require.Equal(t, "late", name)
		require.Zero(t, priority)
	})
}

// TestHealth: Ready and Status name a collection that the server refuses, the handler of the
// options is told, and reads wait no longer than they are asked to.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		refused := pods.Fail(listwatchtest.List, apierrors.NewForbidden(corev1.Resource("pods"), "", nil), listwatchtest.UntilLifted())
		told := make(chan error, 100)
		c := newCache(t, pods, cache.Options{
			DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) { told <- err },
		})
		start(t, c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.True(t, apierrors.IsForbidden(c.List(ctx, &corev1.PodList{})))
		require.True(t, apierrors.IsForbidden(<-told))
		require.ErrorContains(t, c.Ready(time.Minute), "/v1, Kind=Pod, typed: ")
		require.Equal(t, "/v1, Kind=Pod, typed", c.Status()[0].Name)
		refused.Lift()
		require.True(t, c.WaitForCacheSync(t.Context()))
		require.NoError(t, c.Ready(time.Minute))
	})
}

// TestLife: what may be called when.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(pod("ns", "p", "n"))
		c := newCache(t, pods, cache.Options{ReaderFailOnMissingInformer: true})
		var notCached *cache.ErrResourceNotCached
		require.ErrorAs(t, c.List(t.Context(), &corev1.PodList{}), &notCached)
		early, err := c.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err, "it does not wait before Start")
		var notStarted *cache.ErrCacheNotStarted
		require.ErrorAs(t, c.List(t.Context(), &corev1.PodList{}), &notStarted)
		start(t, c)
		require.ErrorContains(t, c.Start(t.Context()), "informer already started")
		same, err := c.GetInformerForKind(t.Context(), corev1.SchemeGroupVersion.WithKind("Pod"))
		require.NoError(t, err)
		require.Equal(t, early, same)
		require.Len(t, list(t, c), 1)
		require.False(t, c.NeedLeaderElection())

		require.NoError(t, c.RemoveInformer(t.Context(), &corev1.Pod{}))
		pods.Server().AwaitWatches(0)
		synctest.Wait()
		require.True(t, early.IsStopped())
		require.ErrorAs(t, c.List(t.Context(), &corev1.PodList{}), &notCached)
	})
	_, err := controllerruntime.NewCache(nil, cache.Options{})
	require.ErrorContains(t, err, "the config is nil")
	_, err = controllerruntime.NewCache(nil, cache.Options{
		NewInformer: func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
			return nil
		},
	})
	require.ErrorContains(t, err, "remove NewInformer or NewCache")
}

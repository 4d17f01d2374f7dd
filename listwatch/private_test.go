package listwatch_test

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// alike returns pods that differ in their names alone.
func alike(i int) *corev1.Pod {
	p := pod(i)
	p.ResourceVersion, p.UID = "", ""
	return p
}

// servesAlike is a server with n pods that are alike.
func servesAlike(t *testing.T, n int) *listwatchtest.Collection[*corev1.Pod] {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	for i := range n {
		pods.Create(alike(i))
	}
	return pods
}

// TestATransformMayWrite: client-go permits it, and each object must have its own writes alone.
func TestATransformMayWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		pods := servesAlike(t, n)
		shared := cache.NewSharedIndexInformer(listwatch.ToClientGo(pods.ListerWatcher()), &corev1.Pod{}, 0, cache.Indexers{})
		require.NoError(t, shared.SetTransform(func(obj any) (any, error) {
			p := obj.(*corev1.Pod)
			p.Labels["name"] = p.Name
			p.Spec.Containers[0].Env[0].Value = p.Name
			return p, nil
		}))
		stop := make(chan struct{})
		go shared.Run(stop)
		check := func() {
			t.Helper()
			time.Sleep(time.Minute) // simulated time
			synctest.Wait()
			require.Len(t, shared.GetStore().List(), n)
			for _, obj := range shared.GetStore().List() {
				p := obj.(*corev1.Pod)
				require.Equal(t, p.Name, p.Labels["name"])
				require.Equal(t, p.Name, p.Spec.Containers[0].Env[0].Value)
				require.Equal(t, "web", p.Labels["app"])
			}
		}
		check()
		pods.Expire()
		pods.Disconnect()
		check()
		for i := range n {
			p := alike(i)
			p.Labels["changed"] = "yes"
			pods.Update(p)
		}
		check()
		close(stop)
	})
}

// TestAProjectionMayWrite: the function of Project may write, too, and may return its argument.
func TestAProjectionMayWrite(t *testing.T) {
	for _, media := range encodings {
		cs := clientset(t, serve(t, answerBoth(media, encode(t, media, v1Version, podList(20)), frames(t, media, v1Version, podEvents(20)...))))
		source := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods",
			listwatch.WithMutationDetector(func(m listwatch.Mutation) { t.Error(m) }))
		written := listwatch.Project(source, func(p *corev1.Pod) *corev1.Pod {
			p.Labels["name"] = p.Name
			p.Spec.Containers[0].Env[0].Value = p.Name
			return p
		})
		for range 2 { // the second list is like a relist
			listed, _, errs := readList(written.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			events, errs := readWatch(written.Watch(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			for i, p := range listed {
				for _, p := range []*corev1.Pod{p, events[i].Object} {
					require.Equal(t, p.Name, p.Labels["name"])
					require.Equal(t, p.Name, p.Spec.Containers[0].Env[0].Value)
				}
			}
			plain, _, errs := readList(source.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			for _, p := range plain {
				require.NotContains(t, p.Labels, "name")
			}
		}
	}
}

// TestProjectionsShare: the parts that a projection has left alone share memory with other objects
// again. The parts that it has made share with the neighbour's in a list, and with the object's own
// last state in a watch.
func TestProjectionsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		pods := servesAlike(t, n)
		trimmed := listwatch.Project(pods.ListerWatcher(), func(p *corev1.Pod) *corev1.Pod {
			p.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: p.Spec.Containers[0].Name}}}
			return p
		})
		held := &store.Indexer[*corev1.Pod]{}
		r := reflector.New(trimmed, held)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { assert.NoError(t, r.Run(ctx)) })
		require.NoError(t, r.WaitSynced(ctx))
		distinct := func() (labels, containers int) {
			of, made := map[uintptr]bool{}, map[*corev1.Container]bool{}
			for _, p := range held.Snapshot().All() {
				of[reflect.ValueOf(p.Labels).Pointer()], made[&p.Spec.Containers[0]] = true, true
			}
			return len(of), len(made)
		}
		labels, containers := distinct()
		require.Equal(t, 1, containers)
		require.Less(t, labels, n/2)
		for i := range n {
			p := alike(i)
			p.Status.Phase = corev1.PodRunning
			pods.Update(p)
		}
		synctest.Wait()
		for _, p := range held.Snapshot().All() {
			require.Equal(t, corev1.PodRunning, p.Status.Phase)
		}
		_, containers = distinct()
		require.Equal(t, 1, containers, "an object that changes goes on sharing")
		cancel()
		running.Wait()
	})
}

// TestReadOnlyReadersShare: a reader that only reads gets no copies.
func TestReadOnlyReadersShare(t *testing.T) {
	cs := clientset(t, serve(t, answer(200, protobufType, encode(t, protobufType, v1Version, podList(2)))))
	source := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods")
	same := func(p *corev1.Pod) *corev1.Pod { return p }
	for name, row := range map[string]struct {
		lw     cache.ListerWatcher
		shares bool
	}{
		"to client-go":                       {listwatch.ToClientGo(source), false},
		"to client-go, read only":            {listwatch.ToClientGo(source, listwatch.ReadOnly()), true},
		"projected":                          {listwatch.ToClientGo(listwatch.Project(source, same), listwatch.ReadOnly()), true},
		"projected, to client-go":            {listwatch.ToClientGo(listwatch.Project(source, same)), false},
		"projected, read only":               {listwatch.ToClientGo(listwatch.Project(source, same, listwatch.ReadOnly()), listwatch.ReadOnly()), true},
		"projected, read only, to client-go": {listwatch.ToClientGo(listwatch.Project(source, same, listwatch.ReadOnly())), false},
		"from client-go":                     {listwatch.ToClientGo(listwatch.FromClientGo[*corev1.Pod](listwatch.ToClientGo(source, listwatch.ReadOnly()))), false},
	} {
		list, err := cache.ToListerWatcherWithContext(row.lw).ListWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		items := itemsOf[*corev1.Pod](t, list)
		require.Equal(t, row.shares, &items[0].Spec.Containers[0] == &items[1].Spec.Containers[0], name)
		require.True(t, sameMemory(items[0].GenerateName, items[1].GenerateName), "%s: texts cannot be written into", name)
	}
}

// alone is a client whose sources share with no other one: other tests may doubt values meanwhile.
func alone(client rest.Interface) rest.Interface {
	return sharing.Scoped{Interface: client, Scope: new(byte)}
}

// TestNoWriteOutlivesARelist: a reader writes into objects, against the rule. Objects decoded after
// its next list are as the server sent them, and share memory with all undamaged parts.
func TestNoWriteOutlivesARelist(t *testing.T) {
	write := map[string]func(p *corev1.Pod){
		"a map":     func(p *corev1.Pod) { p.Labels["app"] = "damaged" },
		"an entry":  func(p *corev1.Pod) { p.Labels["new"] = "damaged" },
		"a slice":   func(p *corev1.Pod) { p.Spec.Containers[0].Env[0].Value = "damaged" },
		"a pointer": func(p *corev1.Pod) { *p.Spec.Volumes[0].ConfigMap.DefaultMode = 7 },
		"a status":  func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.Time{} },
	}
	all, shared := 0, 0
	for name, write := range write {
		for _, media := range encodings {
			for _, relist := range []string{"list", "watch list"} {
				t.Run(fmt.Sprintf("%s %s %s", name, media, relist), func(t *testing.T) {
					const n = 20
					var events []watch.Event // as changes, decoded beside the last state
					for i := range n {
						events = append(events, watch.Event{Type: watch.Modified, Object: pod(i)})
					}
					cs := clientset(t, serve(t, answerBoth(media, encode(t, media, v1Version, podList(n)), frames(t, media, v1Version, events...))))
					source := listwatch.FromClient[corev1.Pod](alone(cs.CoreV1().RESTClient()), "pods")
					plain := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods", listwatch.WithoutSharing())
					want, _, errs := readList(plain.List(t.Context(), metav1.ListOptions{}))
					require.Empty(t, errs)
					// The reader holds nothing, so every object is decoded again.
					reader := source.Holding(func(string) (*corev1.Pod, bool) { return nil, false })
					first, _, _ := readList(reader.List(t.Context(), metav1.ListOptions{}))
					changed, errs := readWatch(reader.Watch(t.Context(), metav1.ListOptions{}))
					require.Empty(t, errs)
					require.Len(t, changed, n)
					write(first[n-1])
					write(changed[n-1].Object)
					untouched := map[*corev1.Toleration]bool{}
					for _, p := range first {
						untouched[&p.Spec.Tolerations[0]] = true
					}

					var again []*corev1.Pod
					if relist == "list" {
						again, _, errs = readList(reader.List(t.Context(), metav1.ListOptions{}))
						require.Empty(t, errs)
					}
					changed, errs = readWatch(reader.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(relist != "list")}))
					require.Empty(t, errs)
					for _, event := range changed {
						again = append(again, event.Object)
					}
					require.NotEmpty(t, again)
					for i, p := range again {
						require.Equal(t, want[i%n], p, "object %d", i)
					}
					for _, p := range again {
						if all++; untouched[&p.Spec.Tolerations[0]] {
							shared++
						}
					}
				})
			}
		}
	}
	// A decoder that meets another one keeps nothing, so that not all of them share.
	require.Greater(t, shared, all/2, "what is whole stays shared")
}

// TestAWriteStaysWithoutAReaderThatHolds: a source alone does not know its readers' objects, and
// trusts its memo. A probe, which is a list of one object, makes no reader doubt it either.
func TestAWriteStaysWithoutAReaderThatHolds(t *testing.T) {
	for _, media := range encodings {
		cs := clientset(t, serve(t, answerBoth(media, encode(t, media, v1Version, podList(20)), frames(t, media, v1Version, podEvents(20)...))))
		source := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods")
		read := func(lw listwatch.ListerWatcher[*corev1.Pod], options metav1.ListOptions) []*corev1.Pod {
			all, _, errs := readList(lw.List(t.Context(), options))
			require.Empty(t, errs)
			return all
		}
		// One of them has what the memo has kept.
		for _, pod := range read(source, metav1.ListOptions{}) {
			pod.Spec.Tolerations[0].Key = "damaged"
		}
		require.Equal(t, "damaged", read(source, metav1.ListOptions{})[19].Spec.Tolerations[0].Key)

		reader := source.Holding(func(string) (*corev1.Pod, bool) { return nil, false })
		read(reader, metav1.ListOptions{Limit: 1})
		require.Equal(t, "damaged", read(source, metav1.ListOptions{})[19].Spec.Tolerations[0].Key)
		read(reader, metav1.ListOptions{})
		require.NotEqual(t, "damaged", read(source, metav1.ListOptions{})[19].Spec.Tolerations[0].Key)
	}
}

// TestNoWriteIntoATreeOutlivesARelist: the same for objects without a Go type.
func TestNoWriteIntoATreeOutlivesARelist(t *testing.T) {
	all, shared := 0, 0
	for range 10 {
		n, of := writeIntoATree(t)
		shared, all = shared+n, all+of
	}
	require.Greater(t, shared, all/2, "what is whole stays shared")
}

// writeIntoATree counts the objects that share an undamaged part after the relist.
func writeIntoATree(t *testing.T) (shared, of int) {
	cs := clientset(t, serve(t, answer(200, jsonType, encode(t, jsonType, v1Version, podList(20)))))
	read := func(lw listwatch.ListerWatcher[*unstructured.Unstructured]) []*unstructured.Unstructured {
		all, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
		require.Empty(t, errs)
		return all
	}
	client := cs.CoreV1().RESTClient()
	reader := listwatch.FromClient[unstructured.Unstructured](alone(client), "pods").
		Holding(func(string) (*unstructured.Unstructured, bool) { return nil, false })
	first := read(reader)
	first[0].Object["metadata"].(map[string]any)["labels"].(map[string]any)["app"] = "damaged"
	spec := first[0].Object["spec"].(map[string]any)
	spec["tolerations"].([]any)[0].(map[string]any)["key"] = "damaged"
	want := read(listwatch.FromClient[unstructured.Unstructured](client, "pods", listwatch.WithoutSharing()))
	again := read(reader)
	require.Equal(t, want, again)
	volumes := func(u *unstructured.Unstructured) uintptr {
		return reflect.ValueOf(u.Object["spec"].(map[string]any)["volumes"]).Pointer()
	}
	untouched := map[uintptr]bool{}
	for _, u := range first {
		untouched[volumes(u)] = true
	}
	for _, u := range again {
		if untouched[volumes(u)] {
			shared++
		}
	}
	return shared, len(again)
}

// TestOnlyOneClientShares: sources over one client share memory, and those of two clients do not,
// since the clients may be of two clusters: a write into an object of one must not show in the
// other. An unshared source shares with none.
func TestOnlyOneClientShares(t *testing.T) {
	body := encode(t, protobufType, v1Version, podList(20))
	client := func() rest.Interface {
		return clientset(t, serve(t, answer(200, protobufType, body))).CoreV1().RESTClient()
	}
	read := func(source listwatch.ListerWatcher[*corev1.Pod]) *corev1.Pod {
		all, _, errs := readList(source.List(t.Context(), metav1.ListOptions{}))
		require.Empty(t, errs)
		return all[19]
	}
	own := client()
	source := listwatch.FromClient[corev1.Pod](own, "pods")
	first := read(source)
	shares := func(source listwatch.ListerWatcher[*corev1.Pod]) bool {
		return &read(source).Spec.Containers[0] == &first.Spec.Containers[0]
	}
	same := func(p *corev1.Pod) *corev1.Pod { return p }
	require.True(t, shares(source))
	require.True(t, shares(listwatch.FromClient[corev1.Pod](own, "pods", listwatch.InNamespace("shop"))))
	require.False(t, shares(listwatch.FromClient[corev1.Pod](client(), "pods")))
	require.False(t, shares(source.Unshared()))
	holding := source.Holding(func(string) (*corev1.Pod, bool) { return first, true })
	require.True(t, shares(holding))
	require.False(t, shares(holding.(*listwatch.ListWatch[*corev1.Pod]).Unshared()))
	projected := listwatch.Project(source, same, listwatch.ReadOnly())
	require.True(t, shares(projected))
	require.False(t, shares(projected.Unshared()))
	require.False(t, shares(listwatch.Intercept(source, nil, nil).Unshared()))
}

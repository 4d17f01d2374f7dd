package clientgo_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// own is a store as a program writes it.
type own struct{ transcript }

func (s *own) Add(obj any) error    { s.note("add %s", describe(obj)); return nil }
func (s *own) Update(obj any) error { s.note("update %s", describe(obj)); return nil }
func (s *own) Delete(obj any) error { s.note("delete %s", describe(obj)); return nil }
func (s *own) Resync() error        { s.note("resync"); return nil }

func (s *own) Replace(all []any, resourceVersion string) error {
	names := []string{}
	for _, obj := range all {
		names = append(names, describe(obj))
	}
	slices.Sort(names)
	s.note("replace %s at %s", names, resourceVersion)
	return nil
}

// keptBy is the common part of both reflectors.
type keptBy interface {
	RunWithContext(context.Context)
	LastSyncResourceVersion() string
	Name() string
	TypeDescription() string
}

// TestReflector: a store of the program's own is told the same by both reflectors.
func TestReflector(t *testing.T) {
	for name, newReflector := range map[string]func(cache.ListerWatcher, cache.ReflectorStore, cache.ReflectorOptions) keptBy{
		"client-go": func(lw cache.ListerWatcher, store cache.ReflectorStore, o cache.ReflectorOptions) keptBy {
			return cache.NewReflectorWithOptions(lw, &corev1.Pod{}, store, o)
		},
		"tributary": func(lw cache.ListerWatcher, store cache.ReflectorStore, o cache.ReflectorOptions) keptBy {
			return clientgo.NewReflectorWithOptions(lw, &corev1.Pod{}, store, o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				a := pods.Create(onNode("ns", "a", "n1"))
				store := &own{}
				r := newReflector(listwatch.ToClientGo(pods.ListerWatcher()), store, cache.ReflectorOptions{Name: "pods", ResyncPeriod: time.Hour})
				require.Equal(t, "pods", r.Name())
				require.Equal(t, "*v1.Pod", r.TypeDescription())
				require.Empty(t, r.LastSyncResourceVersion())
				stop := running(t, r.RunWithContext)
				pods.Server().AwaitWatches(1)
				synctest.Wait()
				require.Equal(t, []string{"replace [a@2] at 2"}, store.take())
				b := pods.Create(onNode("ns", "b", "n1"))
				a = a.DeepCopy()
				a.Labels["changed"] = "yes"
				pods.Update(a)
				pods.Remove(b)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, []string{"add b@3", "update a@4", "delete b@5"}, store.take())
				require.Equal(t, "5", r.LastSyncResourceVersion())
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Equal(t, []string{"resync"}, store.take())
				stop()
			})
		})
	}
	require.Equal(t, "tributary: <nil>", clientgo.NewReflector(&cache.ListWatch{}, nil, &own{}, 0).Name())
}

// TestProcess: a queue and a Process of the program's own, as CoreDNS has them, are told the same
// by both controllers.
func TestProcess(t *testing.T) {
	for name, newController := range map[string]func(*cache.Config) cache.Controller{"client-go": cache.New, "tributary": clientgo.New} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				a := pods.Create(onNode("ns", "a", "n1"))
				content := cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, cache.Indexers{"node": byNode})
				told := &transcript{}
				controller := newController(&cache.Config{
					Queue:         cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KeyFunction: cache.MetaNamespaceKeyFunc, KnownObjects: content}),
					ListerWatcher: listwatch.ToClientGo(pods.ListerWatcher()), ObjectType: &corev1.Pod{}, FullResyncPeriod: time.Hour,
					ShouldResync: func() bool { told.note("should resync"); return true },
					Process: func(item any, initial bool) error {
						for _, d := range item.(cache.Deltas) {
							told.note("%s %s initial=%t", d.Type, describe(d.Object), initial)
							if d.Type == cache.Deleted {
								return content.Delete(d.Object)
							}
							if err := content.Add(d.Object); err != nil {
								return err
							}
						}
						return fmt.Errorf("which is dropped")
					},
				})
				require.False(t, controller.HasSynced())
				stop := running(t, controller.RunWithContext)
				pods.Server().AwaitWatches(1)
				synced(t, controller)
				b := pods.Create(onNode("ns", "b", "n1"))
				time.Sleep(time.Minute)
				synctest.Wait()
				pods.Remove(a)
				time.Sleep(time.Hour)
				synctest.Wait()
				require.Equal(t, []string{
					"Sync a@2 initial=true", "Added b@3 initial=false", "Deleted a@4 initial=false", "should resync", "Sync b@3 initial=false",
				}, told.take())
				require.Equal(t, []any{b}, content.List())
				require.Equal(t, "4", controller.LastSyncResourceVersion())
				stop()
			})
		})
	}
}

// TestConstructorsWithOptions: those that newer generated code calls.
func TestConstructorsWithOptions(t *testing.T) {
	unlabelled := func(obj any) (any, error) {
		pod := obj.(*corev1.Pod).DeepCopy()
		pod.Labels = nil
		return pod, nil
	}
	for name, side := range map[string]struct {
		one    func(cache.InformerOptions) (cache.Store, cache.Controller)
		shared func(cache.ListerWatcher, *corev1.Pod, cache.SharedIndexInformerOptions) cache.SharedIndexInformer
	}{
		"client-go": {cache.NewInformerWithOptions, func(lw cache.ListerWatcher, pod *corev1.Pod, o cache.SharedIndexInformerOptions) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformerWithOptions(lw, pod, o)
		}},
		"tributary": {clientgo.NewInformerWithOptions, func(lw cache.ListerWatcher, pod *corev1.Pod, o cache.SharedIndexInformerOptions) cache.SharedIndexInformer {
			return clientgo.NewSharedIndexInformerWithOptions(lw, pod, o)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				pods.Create(onNode("ns", "a", "n1"))
				lw, ofOne, ofShared := listwatch.ToClientGo(pods.ListerWatcher()), &transcript{}, &transcript{}
				content, controller := side.one(cache.InformerOptions{
					ListerWatcher: lw, ObjectType: &corev1.Pod{}, Handler: ofOne, ResyncPeriod: time.Hour,
					Indexers: cache.Indexers{"node": byNode}, Transform: unlabelled, MinWatchTimeout: 10 * time.Minute,
				})
				shared := side.shared(lw, &corev1.Pod{}, cache.SharedIndexInformerOptions{ResyncPeriod: time.Hour, Indexers: cache.Indexers{"node": byNode}})
				_, err := shared.AddEventHandler(ofShared)
				require.NoError(t, err)
				running(t, controller.RunWithContext)
				running(t, shared.RunWithContext)
				pods.Server().AwaitWatches(2)
				synctest.Wait()
				require.True(t, controller.HasSynced())
				time.Sleep(time.Hour + time.Minute)
				synctest.Wait()
				for _, told := range []*transcript{ofOne, ofShared} {
					require.Equal(t, []string{"add a@2 initial=true", "update a@2 to a@2"}, told.take())
				}
				found, err := content.(cache.Indexer).ByIndex("node", "n1")
				require.NoError(t, err)
				require.Empty(t, found[0].(*corev1.Pod).Labels)
				found, err = shared.GetIndexer().ByIndex("node", "n1")
				require.NoError(t, err)
				require.Len(t, found, 1)
			})
		})
	}
	require.PanicsWithError(t, "clientgo: add a handler: the handler is nil", func() {
		clientgo.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: &cache.ListWatch{}})
	})
}

// TestATransformThatLeavesOut: ours leaves out an object of which the transform makes nil, and
// deletes one of which it does so later. client-go has no object of a list with one of these, says
// that it has synced, and tells nothing later.
func TestATransformThatLeavesOut(t *testing.T) {
	for name, c := range map[string]struct {
		newInformer func(cache.ListerWatcher) cache.SharedIndexInformer
		first, then []string
		keys        []string
	}{
		"client-go": {func(lw cache.ListerWatcher) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, nil)
		}, nil, nil, []string{}},
		"tributary": {func(lw cache.ListerWatcher) cache.SharedIndexInformer {
			return clientgo.NewInformer(lw, &corev1.Pod{}, 0, nil)
		}, []string{"add a@2 initial=true"}, []string{"add c@4 initial=false", "delete a@5"}, []string{"ns/c"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, newer := cache.NewStore(cache.MetaNamespaceKeyFunc).(versioned); name == "client-go" && !newer {
				t.Skip("its release 0.35 tells of the first one")
			}
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				a := pods.Create(onNode("ns", "a", "here"))
				pods.Create(onNode("ns", "b", "elsewhere"))
				shared, told := c.newInformer(listwatch.ToClientGo(pods.ListerWatcher())), &transcript{}
				require.NoError(t, shared.SetTransform(func(obj any) (any, error) {
					if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName == "here" {
						return pod, nil
					}
					return nil, nil // client-go transforms the objects of a watch list twice
				}))
				_, err := shared.AddEventHandler(told)
				require.NoError(t, err)
				running(t, shared.RunWithContext)
				pods.Server().AwaitWatches(1)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.True(t, shared.HasSynced())
				require.Equal(t, c.first, told.take())
				if name == "client-go" {
					return
				}
				pods.Create(onNode("ns", "c", "here"))
				a = a.DeepCopy()
				a.Spec.NodeName = "elsewhere"
				pods.Update(a)
				pods.Create(onNode("ns", "d", "elsewhere"))
				time.Sleep(time.Hour) // with proofs, which compare
				synctest.Wait()
				require.Equal(t, c.then, told.take())
				require.Equal(t, c.keys, shared.GetStore().ListKeys())
				status, _ := clientgo.StatusOf(shared)
				require.Zero(t, status.Unusable)
				require.Zero(t, status.Skipped)
				lists := 0
				for _, count := range status.Lists {
					lists += count
				}
				require.Equal(t, 1, lists)
			})
		})
	}
}

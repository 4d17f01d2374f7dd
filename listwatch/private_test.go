package listwatch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/watchcache"
)

// alike is a pod that has all but its name in common with the others.
func alike(i int) *corev1.Pod {
	p := pod(i)
	p.ResourceVersion, p.UID = "", ""
	return p
}

// TestATransformMayWrite: client-go permits it, and each object must have what was written for it.
func TestATransformMayWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		pods := listwatchtest.New(t, watchcache.Pods())
		for i := range n {
			pods.Create(alike(i))
		}
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
			time.Sleep(time.Minute) // of the bubble's
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

// TestAProjectionMayWrite: so may the function of Project, and it may return what it was given.
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
		for range 2 { // the second is as after a relist
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

// TestReadOnlyReadersShare: who only reads has no copies.
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
		"projected":                          {listwatch.ToClientGo(listwatch.Project(source, same), listwatch.ReadOnly()), false},
		"projected, read only":               {listwatch.ToClientGo(listwatch.Project(source, same, listwatch.ReadOnly()), listwatch.ReadOnly()), true},
		"projected, read only, to client-go": {listwatch.ToClientGo(listwatch.Project(source, same, listwatch.ReadOnly())), false},
		"from client-go":                     {listwatch.ToClientGo(listwatch.FromClientGo[*corev1.Pod](listwatch.ToClientGo(source, listwatch.ReadOnly()))), false},
	} {
		list, err := row.lw.List(metav1.ListOptions{})
		require.NoError(t, err)
		items := itemsOf[*corev1.Pod](t, list)
		require.Equal(t, row.shares, &items[0].Spec.Containers[0] == &items[1].Spec.Containers[0], name)
		require.True(t, sameMemory(items[0].GenerateName, items[1].GenerateName), "%s: texts cannot be written into", name)
	}
}

func TestOptionsThatWouldBeLostAreRefused(t *testing.T) {
	source := listwatch.FromFuncs[*corev1.Pod]((&podFuncs{}).List, (&podFuncs{}).Watch)
	narrow := listwatch.InNamespace("shop")
	adapter := listwatch.ToClientGo(source, narrow)
	_, listErr := adapter.List(metav1.ListOptions{})
	_, watchErr := adapter.Watch(metav1.ListOptions{})
	projected := listwatch.Project(source, func(p *corev1.Pod) *corev1.Pod { return p }, listwatch.ReadOnly(), narrow)
	_, _, listErrs := readList(projected.List(t.Context(), metav1.ListOptions{}))
	_, watchErrs := readWatch(projected.Watch(t.Context(), metav1.ListOptions{}))
	for i, err := range append(append([]error{listErr, watchErr}, listErrs...), watchErrs...) {
		require.ErrorContains(t, err, "take ReadOnly alone: give the other options to their source", fmt.Sprint(i))
	}
}

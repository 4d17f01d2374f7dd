package apiserver_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/server/watchcache"
)

// eventually polls what crosses a real connection.
func eventually(t testing.TB, condition func() bool, what string) {
	t.Helper()
	require.Eventually(t, condition, 20*time.Second, 5*time.Millisecond, what)
}

// everyProtocol runs a test over both formats, with a watch list and with list and watch.
func everyProtocol(t *testing.T, test func(t *testing.T, contentType string)) {
	t.Helper()
	for name, watchList := range map[string]bool{"watch list": true, "list and watch": false} {
		t.Run(name, func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
			everyFormat(t, test)
		})
	}
}

func TestReflectorFollows(t *testing.T) { overBothProtocols(t, checkReflectorFollows) }

func checkReflectorFollows(t *testing.T, newRig func(testing.TB, ...watchcache.Option) *rig) {
	everyProtocol(t, func(t *testing.T, contentType string) {
		r := newRig(t, watchcache.WithBookmarkInterval(20*time.Millisecond))
		r.create(t, pod("a", onNode("n1")), pod("b", onNode("n2")))
		lw := cache.NewListWatchFromClient(r.client(t, contentType).CoreV1().RESTClient(), "pods", "",
			fields.OneTermEqualSelector("spec.nodeName", "n1"))
		held := cache.NewStore(cache.MetaNamespaceKeyFunc)
		reflector := cache.NewReflector(lw, &corev1.Pod{}, held, 0)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			reflector.RunWithContext(ctx)
		}()
		defer func() { cancel(); <-done }()

		keys := func(want ...string) func() bool {
			return func() bool {
				got := held.ListKeys()
				slices.Sort(got)
				return slices.Equal(got, want)
			}
		}
		eventually(t, keys("ns/a"), "the first state")
		last := r.create(t, pod("c", onNode("n1")), pod("d", onNode("n2")))
		_, err := r.pods.Remove("ns", "a")
		require.NoError(t, err)
		eventually(t, keys("ns/c"), "changes")
		_, err = r.configMaps.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}})
		require.NoError(t, err)
		eventually(t, func() bool { return reflector.LastSyncResourceVersion() == "7" }, "a bookmark over foreign writes")
		require.Equal(t, "5", last.ResourceVersion)
	})
}

func TestSharedInformerFollows(t *testing.T) { overBothProtocols(t, checkSharedInformerFollows) }

func checkSharedInformerFollows(t *testing.T, newRig func(testing.TB, ...watchcache.Option) *rig) {
	everyProtocol(t, func(t *testing.T, contentType string) {
		r := newRig(t)
		r.create(t, pod("a"), pod("b"))
		lw := cache.NewListWatchFromClient(r.client(t, contentType).CoreV1().RESTClient(), "pods", "ns", fields.Everything())
		informer := cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
		events := make(chan string, 100)
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { events <- "add " + obj.(*corev1.Pod).Name },
			UpdateFunc: func(_, obj any) { events <- "update " + obj.(*corev1.Pod).Name },
			DeleteFunc: func(obj any) { events <- "delete " + obj.(*corev1.Pod).Name },
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			informer.RunWithContext(ctx)
		}()
		defer func() { cancel(); <-done }()
		require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
		require.ElementsMatch(t, []string{"add a", "add b"}, []string{<-events, <-events})

		b, err := r.pods.Get("ns", "b")
		require.NoError(t, err)
		b = b.DeepCopy()
		b.Spec.Hostname = "h"
		_, err = r.pods.Update(b)
		require.NoError(t, err)
		require.Equal(t, "update b", <-events)
		_, err = r.pods.Remove("ns", "a")
		require.NoError(t, err)
		require.Equal(t, "delete a", <-events)
		require.Equal(t, []string{"ns/b"}, informer.GetStore().ListKeys())
	})
}

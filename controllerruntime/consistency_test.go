package controllerruntime_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestDeletionsOfABlockedHandler: a handler is blocked for 2,000 writes, which is beyond the ring.
// It is told each deletion by UID and with the deletion's version: a client that waits for the
// deletions that it has asked for, as EnableReadYourWritesConsistency does, comes to an end.
func TestDeletionsOfABlockedHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		busy := pods.Create(pod("ns", "busy", "n"))
		c := newCache(t, pods, cache.Options{})
		shared, err := c.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		start(t, c)
		goOn := make(chan struct{})
		told := map[string]string{}
		_, err = shared.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { <-goOn },
			DeleteFunc: func(obj any) {
				p, final := obj.(*corev1.Pod)
				require.True(t, final, "%T", obj)
				told[string(p.UID)] = p.ResourceVersion
			},
		})
		require.NoError(t, err)
		synctest.Wait()
		want := map[string]string{}
		for n := range 1000 {
			busy = busy.DeepCopy()
			busy.Labels = map[string]string{"n": fmt.Sprint(n)}
			busy = pods.Update(busy)
			if n%100 == 0 {
				short := pods.Create(pod("ns", "short", "n"))
				gone := pods.Remove(short)
				want[string(short.UID)] = gone.ResourceVersion
			}
			busy = busy.DeepCopy()
			busy.Labels["n"] = "again"
			busy = pods.Update(busy)
		}
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		require.Equal(t, want, told)
	})
}

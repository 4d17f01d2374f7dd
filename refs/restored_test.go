package refs_test

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/store"
)

// either reads one of two servers.
type either[T store.Object] struct {
	second *atomic.Bool
	of     [2]listwatch.ListerWatcher[T]
}

func (e either[T]) now() listwatch.ListerWatcher[T] {
	if e.second.Load() {
		return e.of[1]
	}
	return e.of[0]
}

func (e either[T]) List(ctx context.Context, o metav1.ListOptions) listwatch.List[T] {
	return e.now().List(ctx, o)
}

func (e either[T]) Watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[listwatch.Event[T], error] {
	return e.now().Watch(ctx, o)
}

func both[T store.Object](second *atomic.Bool, a, b func(string) listwatch.ListerWatcher[T]) func(string) listwatch.ListerWatcher[T] {
	return func(namespace string) listwatch.ListerWatcher[T] {
		return either[T]{second, [2]listwatch.ListerWatcher[T]{a(namespace), b(namespace)}}
	}
}

// TestAServerThatWentBack: the server's etcd is restored from a backup, so its versions are older
// than those held. What the server says twice is believed, and followed.
func TestAServerThatWentBack(t *testing.T) {
	for _, share := range []int{0, 1} {
		t.Run(fmt.Sprintf("WithNamespaceWatch(%d)", share), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before, after := newQuietRig(t), newQuietRig(t)
				var restored atomic.Bool
				r := refs.New(refs.Source[*corev1.Secret]{
					Objects:  both(&restored, before.source.Objects, after.source.Objects),
					Metadata: both(&restored, before.source.Metadata, after.source.Metadata),
				}, refs.WithNamespaceWatch(share), refs.WithIdle(0))
				before.Refs = r
				before.run()
				for i := range 10 {
					before.put("tls", fmt.Sprint(i))
				}
				after.put("tls", "of the backup")
				r.SetOwner("pod", refs.In(ns, "tls"))
				require.Equal(t, "9", before.value("tls"))
				time.Sleep(time.Minute)
				require.Equal(t, "9", before.value("tls"))

				restored.Store(true)
				before.server.Disconnect()
				time.Sleep(time.Minute)
				require.Equal(t, "of the backup", before.value("tls"))
				after.put("tls", "after it")
				synctest.Wait()
				require.Equal(t, "after it", before.value("tls"))
			})
		})
	}
}

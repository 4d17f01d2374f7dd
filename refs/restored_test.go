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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/store"
)

// address is the server that answers at the moment.
type address struct {
	now atomic.Pointer[refs.Source[*corev1.Secret]]
}

func (a *address) source() refs.Source[*corev1.Secret] {
	return refs.Source[*corev1.Secret]{
		Objects: func(ns string) listwatch.ListerWatcher[*corev1.Secret] {
			return behind[*corev1.Secret]{func() listwatch.ListerWatcher[*corev1.Secret] { return a.now.Load().Objects(ns) }}
		},
		Metadata: func(ns string) listwatch.ListerWatcher[*metav1.PartialObjectMetadata] {
			return behind[*metav1.PartialObjectMetadata]{func() listwatch.ListerWatcher[*metav1.PartialObjectMetadata] {
				return a.now.Load().Metadata(ns)
			}}
		},
	}
}

type behind[T store.Object] struct {
	now func() listwatch.ListerWatcher[T]
}

func (b behind[T]) List(ctx context.Context, o metav1.ListOptions) listwatch.List[T] {
	return b.now().List(ctx, o)
}

func (b behind[T]) Watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[listwatch.Event[T], error] {
	return b.now().Watch(ctx, o)
}

// TestARestoredServer: the server's etcd is restored from a backup. Its versions are older than
// those held, or have passed them. Each name has the state of the backup within a minute.
func TestARestoredServer(t *testing.T) {
	for _, share := range []int{0, 1} {
		for _, since := range []int{0, 100} {
			t.Run(fmt.Sprintf("WithNamespaceWatch(%d), %d writes since", share, since), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					before, after, to := newQuietRig(t), newQuietRig(t), address{}
					to.now.Store(&before.source)
					r := refs.New(to.source(), refs.WithNamespaceWatch(share), refs.WithIdle(0))
					before.Refs = r
					before.run()
					before.put("lost", "1")
					before.put("deleted", "1")
					before.remove("deleted")
					for i := range 10 {
						before.put("tls", fmt.Sprint(i))
					}
					after.put("tls", "of the backup")
					after.put("deleted", "of the backup")
					for i := range since {
						after.put("other", fmt.Sprint(i))
					}
					r.SetOwner("pod", refs.In(ns, "tls", "deleted", "lost"))
					require.Equal(t, "9", before.value("tls"))
					time.Sleep(time.Minute)

					to.now.Store(&after.source)
					before.server.Disconnect()
					time.Sleep(time.Minute)
					require.Equal(t, "of the backup", before.value("tls"))
					require.Equal(t, "of the backup", before.value("deleted"))
					_, err := r.Get(t.Context(), ns, "lost")
					require.True(t, apierrors.IsNotFound(err), "%v", err)
					after.put("tls", "after it")
					synctest.Wait()
					require.Equal(t, "after it", before.value("tls"))
				})
			})
		}
	}
}

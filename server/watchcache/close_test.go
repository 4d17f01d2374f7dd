package watchcache_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/storetest"
)

// slowUpstream answers no question, and needs a second to notice that it is asked no longer.
type slowUpstream struct{}

func (slowUpstream) Newest(ctx context.Context) (string, error) {
	<-ctx.Done()
	time.Sleep(time.Second)
	return "", ctx.Err()
}

func (u slowUpstream) Progress(ctx context.Context, _ string) (after, until string, err error) {
	_, err = u.Newest(ctx)
	return "", "", err
}

// TestCloseEndsAll: readers under way and later ones fail with a 503, writers fail, and no
// goroutine of the cache is left when Close returns: the bubble would find one.
func TestCloseEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := watchcache.NewCache(watchcache.Pods(), watchcache.WithUpstream(slowUpstream{}), watchcache.WithFreshWait(time.Hour))
		require.NoError(t, err)
		stored := storetest.Pod
		require.NoError(t, c.Replace(store.Items(stored("a", 2)), store.At("5")))

		var readers sync.WaitGroup
		var ends sync.Map
		read := func(name string, do func(context.Context) error) {
			readers.Go(func() { ends.Store(name, do(t.Context())) })
		}
		watch := func(options metav1.ListOptions) func(context.Context) error {
			return func(ctx context.Context) error {
				for _, err := range c.Watch(ctx, options) {
					if err != nil {
						return err
					}
				}
				return nil
			}
		}
		initial := true
		read("watch", watch(metav1.ListOptions{ResourceVersion: "5"}))
		read("watch of a node", watch(metav1.ListOptions{ResourceVersion: "5", FieldSelector: "spec.nodeName=n", AllowWatchBookmarks: true}))
		read("watch of a fresh state", watch(metav1.ListOptions{
			SendInitialEvents: &initial, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}))
		read("wait for a version", func(ctx context.Context) error { return c.WaitFor(ctx, "9") })
		read("wait for a proof", c.WaitFresh)
		synctest.Wait() // they all wait

		began := time.Now()
		closed := make(chan struct{})
		go func() {
			c.Close()
			close(closed)
		}()
		c.Close()
		require.GreaterOrEqual(t, time.Since(began), time.Second, "it has waited for the upstream")
		<-closed
		readers.Wait()
		count := 0
		ends.Range(func(name, err any) bool {
			count++
			got, _ := err.(error)
			require.True(t, apierrors.IsServiceUnavailable(got), "%s: %v", name, got)
			return true
		})
		require.Equal(t, 5, count)

		require.True(t, apierrors.IsServiceUnavailable(c.WaitFresh(t.Context())))
		_, err = c.Page(t.Context(), watchcache.Request{})
		require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
		for name, write := range map[string]func() error{
			"add":      func() error { return c.Add(stored("b", 9)) },
			"delete":   func() error { return c.Delete(stored("a", 9)) },
			"replace":  func() error { return c.Replace(store.Items[*corev1.Pod](), store.At("9")) },
			"bookmark": func() error { return c.Bookmark("9") },
		} {
			require.EqualError(t, write(), "watchcache: "+name+": the cache of pods is closed")
		}
		require.Equal(t, 1, c.Snapshot().Len(), "the last state stays readable")
	})
}

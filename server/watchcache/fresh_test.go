package watchcache_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// upstream answers after a time of the simulated clock.
type upstream struct {
	takes    time.Duration
	progress func(ctx context.Context, since string) (after, until string, err error)

	mu     sync.Mutex
	newest int
	err    error
	asked  int // guarded by mu, as are newest and err
	atOnce int
	most   int
}

func (u *upstream) Newest(ctx context.Context) (string, error) {
	u.mu.Lock()
	u.asked++
	u.atOnce++
	u.most = max(u.most, u.atOnce)
	answer, err := fmt.Sprint(u.newest), u.err
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.atOnce--
	}()
	select {
	case <-time.After(u.takes):
		return answer, err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (u *upstream) Progress(ctx context.Context, since string) (after, until string, err error) {
	if u.progress == nil {
		return "", "", nil
	}
	return u.progress(ctx, since)
}

func (u *upstream) writes(version int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.newest = version
}

// copyOf is a cache of pod a@5 at version 5, of an upstream that is there.
func copyOf(t testing.TB, u *upstream) *watchcache.Cache[*corev1.Pod] {
	t.Helper()
	c := newCache(t, watchcache.WithUpstream(u))
	t.Cleanup(c.Close)
	u.writes(5)
	require.NoError(t, c.Replace(store.Items(stored("a", 5)), store.At("5")))
	return c
}

// TestReadsWithoutAVersionAreProvenFresh: each kind of read that names no version shows a write
// that the upstream made before it, though the event comes later. One at any version does not wait.
// 100,000 watchers change nothing about that.
func TestReadsWithoutAVersionAreProvenFresh(t *testing.T) {
	yes := true
	reads := map[string]func(context.Context, *podCache) error{
		"list":  func(ctx context.Context, c *podCache) error { return has(c.Page(ctx, watchcache.Request{})) },
		"fresh": func(ctx context.Context, c *podCache) error { return c.WaitFresh(ctx) },
		"get": func(ctx context.Context, c *podCache) error {
			_, err := c.Get(ctx, watchcache.Request{Namespace: "ns", Name: "b"})
			return err
		},
		"watch": func(ctx context.Context, c *podCache) error {
			for e, err := range c.Watch(ctx, metav1.ListOptions{
				SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true,
			}) {
				switch {
				case err != nil:
					return err
				case e.InitialEventsEnd:
					return errors.New("the watch does not begin with b")
				case e.Object.Name == "b":
					return nil
				}
			}
			return nil
		},
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := &upstream{}
				c := copyOf(t, u)
				if name == "list" {
					crowd(t, c)
				}
				require.NoError(t, c.WaitFresh(t.Context()), "nothing has been written since")
				u.writes(7)
				go func() {
					time.Sleep(time.Second)
					_ = c.Add(stored("b", 7))
				}()
				began := time.Now()
				require.NoError(t, read(t.Context(), c))
				require.Equal(t, time.Second, time.Since(began))
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{err: errors.New("unreachable")}
		c := copyOf(t, u)
		asked := metav1.ListOptions{ResourceVersion: "0"}
		list := c.List(t.Context(), asked)
		for _, err := range list.Items {
			require.NoError(t, err)
		}
		require.Equal(t, "5", list.Meta().ResourceVersion)
		require.Zero(t, u.asked)
	})
}

type podCache = watchcache.Cache[*corev1.Pod]

// has checks that a page has pod b.
func has(page watchcache.Page[*corev1.Pod], err error) error {
	if err == nil && (len(page.Objects) != 2 || page.Objects[1].Name != "b") {
		err = fmt.Errorf("the list has %d pods at %s", len(page.Objects), page.Meta.ResourceVersion)
	}
	return err
}

// TestReadersShareOneQuestion: at most one question is in flight. Readers that come while it is
// share the next: its answer may be from before their call.
func TestReadersShareOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{takes: time.Second}
		c := copyOf(t, u)
		var done sync.WaitGroup
		read := func() {
			done.Go(func() { require.NoError(t, c.WaitFresh(t.Context())) })
		}
		began := time.Now()
		read()
		synctest.Wait()
		for range 100 {
			read()
		}
		done.Wait()
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, 2, u.asked)
		require.Equal(t, 1, u.most)

		ctx, cancel := context.WithCancel(t.Context())
		done.Go(func() { require.ErrorIs(t, c.WaitFresh(ctx), context.Canceled) })
		synctest.Wait()
		cancel()
		done.Wait()
		time.Sleep(u.takes) // of the simulated clock
		synctest.Wait()
		require.Zero(t, u.atOnce, "the question ends, though nobody waits for its answer")
	})
}

// TestProgressMakesTheCopyComplete: a version of another collection is reached by progress, whether
// it comes as a bookmark in the watch or as an answer. An answer counts once the copy has all
// events before it.
func TestProgressMakesTheCopyComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{}
		c := copyOf(t, u)
		u.progress = func(context.Context, string) (string, string, error) {
			return "", "", c.Bookmark("8")
		}
		u.writes(8)
		began := time.Now()
		require.NoError(t, c.WaitFresh(t.Context()))
		require.Equal(t, "8", c.ResourceVersion())
		require.Zero(t, time.Since(began))

		u.progress = func(_ context.Context, since string) (string, string, error) {
			require.Equal(t, "8", since)
			return "", "11", nil
		}
		require.NoError(t, c.WaitFor(t.Context(), "10"))
		require.Equal(t, "11", c.ResourceVersion())

		u.progress = func(context.Context, string) (string, string, error) { return "13", "14", nil }
		go func() {
			time.Sleep(time.Second)
			_ = c.Add(stored("b", 12))
			synctest.Wait()
			require.Equal(t, "12", c.ResourceVersion(), "13 is still missing")
			_ = c.Add(stored("b", 13))
		}()
		require.NoError(t, c.WaitFor(t.Context(), "14"))
		require.Equal(t, "14", c.ResourceVersion())
	})
}

// TestProgressOfAnotherHistory: an answer that was asked for before a list does not count.
func TestProgressOfAnotherHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{}
		c := copyOf(t, u)
		u.progress = func(context.Context, string) (string, string, error) {
			// The last question may come when the test has ended, and the cache is closed.
			return "", "8", c.Replace(store.Items(stored("a", 2)), store.At("3"))
		}
		err := c.WaitFor(t.Context(), "8")
		require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)
		require.Equal(t, "3", c.ResourceVersion())
	})
}

// TestUnprovenReadsFail: without an answer of the upstream there is no consistent read, and the
// error says why. A version that nobody has written is the API server's 504, after its wait.
func TestUnprovenReadsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{}
		c := copyOf(t, u)
		began := time.Now()
		err := c.WaitFor(t.Context(), "100")
		require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)
		require.Equal(t, 3*time.Second, time.Since(began))

		u.err = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no role"))
		err = c.WaitFresh(t.Context())
		require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
		require.ErrorContains(t, err, "the upstream of pods could not be asked for its newest version: pods is forbidden: no role")

		u.err = apierrors.NewServiceUnavailable("no leader")
		require.EqualError(t, c.WaitFresh(t.Context()), "no leader")

		u.err, u.takes = nil, time.Hour
		began = time.Now()
		err = c.WaitFresh(t.Context())
		require.True(t, apierrors.IsTimeout(err), "%v", err)
		require.ErrorContains(t, err, "the upstream of pods did not answer in time")
		require.Equal(t, 3*time.Second, time.Since(began))

		_, err = watchcache.NewCache(watchcache.Pods(), watchcache.WithUpstream(u), watchcache.WithRevision(watchcache.NewRevision()))
		require.ErrorContains(t, err, "WithUpstream and WithRevision")
	})
}

// TestAReaderWithADeadlineWaitsForIt, as before the API server: for an upstream that is slow to
// answer, and for a copy that is slow to follow. The proof has failed before.
func TestAReaderWithADeadlineWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &upstream{takes: 5 * time.Second}
		c := copyOf(t, u)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		var done sync.WaitGroup
		for range 300 {
			done.Go(func() { require.NoError(t, c.WaitFresh(ctx)) })
		}
		time.Sleep(4 * time.Second)
		require.Equal(t, watchcache.Failing, c.Proof().State)
		done.Wait()
		require.Equal(t, 8*time.Second, time.Since(began), "a question of 3 s, and one that may take 6")

		u.takes = 0
		u.writes(7)
		go func() {
			time.Sleep(10 * time.Second)
			_ = c.Add(stored("b", 7))
		}()
		began = time.Now()
		require.NoError(t, c.WaitFresh(ctx))
		require.Equal(t, 10*time.Second, time.Since(began))

		u.writes(9)
		err := c.WaitFresh(ctx)
		require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)
		require.Equal(t, time.Minute, time.Since(began)+8*time.Second, "until its deadline")
		u.takes = time.Hour
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorContains(t, c.WaitFresh(ctx), "the upstream of pods did not answer in time")
	})
}

package controllerruntime_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
)

var resourcePods = schema.GroupResource{Resource: "pods"}

// refuse answers all lists, and watch lists, with an error until it is lifted.
func refuse(pods *listwatchtest.Collection[*corev1.Pod], err error) (lift func()) {
	return pods.Fail(listwatchtest.List, err, listwatchtest.UntilLifted()).Lift
}

// reads are the calls that wait for a collection of pods, and return an error.
var reads = map[string]func(context.Context, cache.Cache) error{
	"Get": func(ctx context.Context, c cache.Cache) error {
		return c.Get(ctx, keyOf("ns", "p"), &corev1.Pod{})
	},
	"List": func(ctx context.Context, c cache.Cache) error {
		return c.List(ctx, &corev1.PodList{})
	},
	"GetInformer": func(ctx context.Context, c cache.Cache) error {
		_, err := c.GetInformer(ctx, &corev1.Pod{})
		return err
	},
	"GetInformerForKind": func(ctx context.Context, c cache.Cache) error {
		_, err := c.GetInformerForKind(ctx, corev1.SchemeGroupVersion.WithKind("Pod"))
		return err
	},
}

// TestReadsNameTheCause: if the context of a read ends before the first list, the error has the
// class and the cause of the last failure. It is a timeout only if the server gave no answer.
func TestReadsNameTheCause(t *testing.T) {
	for class, row := range map[reflector.Class]struct {
		answer error
		is     func(error) bool
	}{
		reflector.Forbidden:    {apierrors.NewForbidden(resourcePods, "", errors.New("no role")), apierrors.IsForbidden},
		reflector.Unauthorized: {apierrors.NewUnauthorized("no token"), apierrors.IsUnauthorized},
		reflector.ServerError:  {apierrors.NewInternalError(errors.New("no etcd")), apierrors.IsInternalError},
		reflector.NotFound:     {apierrors.NewNotFound(resourcePods, ""), meta.IsNoMatchError},
		reflector.Disconnected: {nil, apierrors.IsTimeout},
		reflector.OK:           {nil, apierrors.IsTimeout},
	} {
		for name, read := range reads {
			t.Run(string(class)+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					pods := listwatchtest.New(t, listwatchtest.Pods())
					switch {
					case row.answer != nil:
						refuse(pods, row.answer)
					case class == reflector.Disconnected:
						pods.Disconnect(listwatchtest.UntilLifted())
					default:
						pods.Mute(listwatchtest.UntilLifted())
					}
					c := newCache(t, pods, cache.Options{})
					start(t, c)
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					defer cancel()
					err := read(ctx, c)
					require.True(t, row.is(err), "%v", err)
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.ErrorContains(t, err, "controllerruntime: /v1, Kind=Pod, typed: not synced: ")
					require.False(t, apierrors.IsNotFound(err), "the object may exist")
					if class != reflector.OK {
						require.ErrorContains(t, err, string(class)+": ")
						require.ErrorContains(t, err, " attempts since ")
					}
					if row.answer != nil {
						require.ErrorContains(t, err, row.answer.Error())
					}
				})
			})
		}
	}
}

// TestFailFast: a read fails at once if the server does not permit the list, or does not know the
// resource. It succeeds later, within five seconds of the grant, or half a minute after a 401.
func TestFailFast(t *testing.T) {
	for name, read := range reads {
		for _, row := range []struct {
			answer error
			is     func(error) bool
			within time.Duration
		}{
			{apierrors.NewForbidden(resourcePods, "", errors.New("no role")), apierrors.IsForbidden, 5 * time.Second},
			{apierrors.NewUnauthorized("no token"), apierrors.IsUnauthorized, 30 * time.Second},
			{apierrors.NewNotFound(resourcePods, ""), meta.IsNoMatchError, 5 * time.Second},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					pods := listwatchtest.New(t, listwatchtest.Pods())
					pods.Create(pod("ns", "p", "n"))
					lift := refuse(pods, row.answer)
					c := newCache(t, pods, cache.Options{}, controllerruntime.FailFast())
					start(t, c)
					began := time.Now()
					for range 3 {
						err := read(t.Context(), c)
						require.True(t, row.is(err), "%v", err)
						require.ErrorContains(t, err, row.answer.Error())
						require.False(t, apierrors.IsNotFound(err))
						require.False(t, apierrors.IsTimeout(err))
					}
					require.Equal(t, began, time.Now())
					time.Sleep(time.Minute)
					lift()
					time.Sleep(row.within)
					synctest.Wait()
					require.NoError(t, read(t.Context(), c))
					pods.Fail(listwatchtest.Watch, row.answer, listwatchtest.UntilLifted())
					pods.Disconnect()
					time.Sleep(time.Minute)
					require.NoError(t, read(t.Context(), c), "a collection that was synced is read as ever")
				})
			})
		}
	}
}

// TestFailFastWaits: FailFast is not for failures that pass by themselves, nor for a watch list
// that is refused when LIST is permitted. WaitForCacheSync waits, since a manager that gets false
// waits for ever.
func TestFailFastWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(pod("ns", "p", "n"))
		lift := refuse(pods, apierrors.NewInternalError(errors.New("no etcd")))
		time.AfterFunc(time.Minute, lift)
		c := newCache(t, pods, cache.Options{}, controllerruntime.FailFast())
		start(t, c)
		require.Len(t, list(t, c), 1)
	})
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(pod("ns", "p", "n"))
		pods.Fail(listwatchtest.Watch, apierrors.NewForbidden(resourcePods, "", nil), listwatchtest.UntilLifted())
		c := newCache(t, pods, cache.Options{}, controllerruntime.FailFast())
		start(t, c)
		require.Len(t, list(t, c), 1)
	})
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		lift := refuse(pods, apierrors.NewForbidden(resourcePods, "", nil))
		time.AfterFunc(time.Minute, lift)
		c := newCache(t, pods, cache.Options{}, controllerruntime.FailFast())
		_, err := c.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err, "it does not wait before Start")
		start(t, c) // waits
		require.Len(t, list(t, c), 0)
	})
}

// TestFailFastNamesTheNamespace: of several namespaces, the error names one that is refused, and
// none that was refused before.
func TestFailFastNamesTheNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		var refused sync.Map
		refused.Store("/api/v1/namespaces/a/pods", true)
		refused.Store("/api/v1/namespaces/b/pods", true)
		pods.Intercept(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			if _, ok := refused.Load(r.URL.Path); ok {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			server.ServeHTTP(w, r)
		}, listwatchtest.UntilLifted())
		c := newCache(t, pods, cache.Options{
			DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}, "c": {}},
		}, controllerruntime.FailFast())
		start(t, c)
		err := c.List(t.Context(), &corev1.PodList{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		time.Sleep(time.Second)
		require.ErrorContains(t, c.List(t.Context(), &corev1.PodList{}), `not synced: forbidden: member "a": `)
		refused.Delete("/api/v1/namespaces/a/pods")
		time.Sleep(5 * time.Second)
		require.ErrorContains(t, c.List(t.Context(), &corev1.PodList{}), `not synced: forbidden: member "b": `)
		refused.Delete("/api/v1/namespaces/b/pods")
		time.Sleep(5 * time.Second)
		require.NoError(t, c.List(t.Context(), &corev1.PodList{}))
	})
}

// TestFailFastIgnoresProbes: a role with the verb watch alone keeps a namespace. A read that waits
// for another namespace does not fail because the probes of this one are refused.
func TestFailFastIgnoresProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Intercept(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			switch {
			case r.URL.Path == "/api/v1/namespaces/b/pods":
				<-r.Context().Done()
			case r.URL.Query().Get("watch") == "":
				w.WriteHeader(http.StatusForbidden)
			default:
				server.ServeHTTP(w, r)
			}
		}, listwatchtest.UntilLifted())
		c := newCache(t, pods, cache.Options{
			DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}},
		}, controllerruntime.FailFast())
		start(t, c)
		_, err := c.GetInformer(t.Context(), &corev1.Pod{}, cache.BlockUntilSynced(false))
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		probes := 0
		for _, request := range pods.Server().Requests(listwatchtest.List) {
			if request.Namespace == "a" {
				probes++
			}
		}
		require.Positive(t, probes)
		require.ErrorIs(t, c.List(soon(t), &corev1.PodList{}), context.DeadlineExceeded)
	})
}

// TestAfterStart: once Start has ended, what would wait fails at once and says so. What was synced
// can be read.
func TestAfterStart(t *testing.T) {
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				pods.Create(pod("ns", "p", "n"))
				pods.Mute(listwatchtest.UntilLifted())
				c := newCache(t, pods, cache.Options{})
				requireNotStarted(t, c.Ready(time.Minute), "Start has not been called")
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- c.Start(ctx) }()
				synctest.Wait()
				require.NoError(t, c.Ready(time.Minute))
				waiting := make(chan error, 1)
				go func() { waiting <- read(t.Context(), c) }()
				synctest.Wait()
				began := time.Now()
				cancel()
				requireNotStarted(t, <-waiting, "Pod, typed: not synced: Start has ended")
				require.NoError(t, <-ended)
				requireNotStarted(t, read(t.Context(), c), "Pod, typed: not synced: Start has ended")
				_, err := c.GetInformerForKind(t.Context(), corev1.SchemeGroupVersion.WithKind("Node"))
				requireNotStarted(t, err, "Node, typed: not synced: Start has ended")
				requireNotStarted(t, c.Ready(time.Minute), "Start has ended")
				require.False(t, c.WaitForCacheSync(t.Context()))
				require.Equal(t, began, time.Now())
			})
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				pods.Create(pod("ns", "p", "n"))
				c := newCache(t, pods, cache.Options{})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- c.Start(ctx) }()
				synctest.Wait()
				require.NoError(t, read(t.Context(), c))
				cancel()
				require.NoError(t, <-ended)
				require.NoError(t, read(t.Context(), c))
				requireNotStarted(t, c.Ready(time.Minute), "Start has ended")
			})
		})
	}
}

func requireNotStarted(t *testing.T, err error, text string) {
	t.Helper()
	var notStarted *cache.ErrCacheNotStarted
	require.ErrorAs(t, err, &notStarted)
	require.ErrorContains(t, err, text)
}

// TestLeanAfterStart: a lean kind says that Start has ended, too. A name that was read before is
// read as ever.
func TestLeanAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLeanRig(t, cache.Options{})
		r.put("tls", "1")
		r.put("db", "1")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Start(ctx) }()
		synctest.Wait()
		require.Equal(t, "1", r.value("tls"))
		cancel()
		require.NoError(t, <-ended)
		require.Equal(t, "1", r.value("tls"))
		requireNotStarted(t, r.Get(t.Context(), keyOf("ns", "db"), &corev1.Secret{}), "Start has ended")
	})
	synctest.Test(t, func(t *testing.T) {
		r := newLeanRig(t, cache.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Start(ctx) }()
		synctest.Wait()
		cancel()
		require.NoError(t, <-ended)
		requireNotStarted(t, r.Get(t.Context(), keyOf("ns", "db"), &corev1.Secret{}), "Start has ended")
	})
}

// TestWaitForCacheSyncLogsTheCause: it has no error to return.
func TestWaitForCacheSyncLogsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		lift := refuse(pods, apierrors.NewForbidden(resourcePods, "", errors.New("no role")))
		c := newCache(t, pods, cache.Options{})
		_, err := c.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		logged := hear()
		require.False(t, c.WaitForCacheSync(soon(t)))
		require.Contains(t, logged(), "Start has not been called")
		time.AfterFunc(time.Minute, lift)
		logged = hear()
		start(t, c)
		require.NotContains(t, logged(), "not synced")
	})
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		refuse(pods, apierrors.NewForbidden(resourcePods, "", errors.New("no role")))
		c := newCache(t, pods, cache.Options{})
		start(t, c)
		_, err := c.GetInformer(t.Context(), &corev1.Pod{}, cache.BlockUntilSynced(false))
		require.NoError(t, err)
		logged := hear()
		require.False(t, c.WaitForCacheSync(soon(t)))
		require.Contains(t, logged(), "Pod, typed: not synced: forbidden: ")
	})
}

// TestRemovedWhileRead: RemoveInformer ends a read that waits, and the error says so.
func TestRemovedWhileRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Mute(listwatchtest.UntilLifted())
		c := newCache(t, pods, cache.Options{})
		start(t, c)
		waiting := make(chan error, 1)
		go func() { waiting <- c.List(t.Context(), &corev1.PodList{}) }()
		synctest.Wait()
		require.NoError(t, c.RemoveInformer(t.Context(), &corev1.Pod{}))
		err := <-waiting
		require.ErrorContains(t, err, "not synced: RemoveInformer has ended it")
		require.True(t, apierrors.IsTimeout(err))
	})
}

// TestOwnWritesNameTheCause: a read that waits in vain for its own write says what keeps the cache
// behind.
func TestOwnWritesNameTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		c := newCache(t, pods, cache.Options{})
		options := client.Options{Mapper: mapper(), Cache: &client.CacheOptions{Reader: c}}
		writer, err := controllerruntime.NewClient(pods.Server().Config(), options)
		require.NoError(t, err)
		start(t, c)
		require.Empty(t, list(t, c))
		forbidden := apierrors.NewForbidden(resourcePods, "", errors.New("no role"))
		refuse(pods, forbidden)
		pods.Fail(listwatchtest.Watch, forbidden, listwatchtest.UntilLifted())
		pods.Disconnect()
		synctest.Wait()
		require.NoError(t, writer.Create(t.Context(), valid("ns", "new")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = writer.Get(ctx, keyOf("ns", "new"), &corev1.Pod{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(t, err, "(forbidden: ")
	})
}

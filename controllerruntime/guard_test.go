package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// somePods are so many, in two namespaces.
func somePods(t *testing.T, count int) *listwatchtest.Collection[*corev1.Pod] {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	for i := range count {
		pods.Create(pod(fmt.Sprint("ns", i%2), fmt.Sprint("p", i), "n"))
	}
	return pods
}

// TestAReadThatStartsACollectionIsLogged: one line when it starts, with the function that read, and
// one with the size. Reads of a collection that exists, and informers, log nothing.
func TestAReadThatStartsACollectionIsLogged(t *testing.T) {
	for verb, read := range map[string]func(context.Context, cache.Cache) error{"get": reads["Get"], "list": reads["List"]} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := somePods(t, 20)
				pods.Create(pod("ns", "p", "n"))
				c := newCache(t, pods, cache.Options{})
				start(t, c)
				logged := hear()
				for range 3 {
					require.NoError(t, read(t.Context(), c))
				}
				synctest.Wait()
				lines := strings.Split(strings.TrimSpace(logged()), "\n")
				require.Len(t, lines, 2, "%s", logged())
				for _, part := range []string{
					`"kind"="/v1, Kind=Pod, typed"`, `"scope"="all namespaces"`, `"read"="` + verb + `"`, `"caller"="` + ownTests, "(wait_test.go:",
				} {
					require.Contains(t, lines[0], part)
				}
				require.Regexp(t, `"objects"=21 "receivedBytes"=[1-9]\d+ "took"="`, lines[1])
			})
		})
	}
	for name, read := range map[string]func(context.Context, *controllerruntime.Cache) error{
		"GetInformer": func(ctx context.Context, c *controllerruntime.Cache) error { return reads["GetInformer"](ctx, c) },
		"IndexField": func(ctx context.Context, c *controllerruntime.Cache) error {
			return c.IndexField(ctx, &corev1.Pod{}, "node", onNode)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCache(t, somePods(t, 3), cache.Options{})
				start(t, c)
				logged := hear()
				require.NoError(t, read(t.Context(), c))
				require.NoError(t, c.List(t.Context(), &corev1.PodList{}))
				synctest.Wait()
				require.Empty(t, logged(), "the program asked for the kind by name")
			})
		})
	}
}

const ownTests = "github.com/tributary-go/tributary/controllerruntime_test."

// TestWarnAbove: a line tells of a large collection, at once or after it has grown.
func TestWarnAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := somePods(t, 20)
		c := newCache(t, pods, cache.Options{}, controllerruntime.WarnAbove(20))
		start(t, c)
		logged := hear()
		require.NoError(t, c.List(t.Context(), &corev1.PodList{}))
		time.Sleep(time.Hour)
		require.NotContains(t, logged(), "is large")
		pods.Create(pod("ns", "one-more", "n"))
		time.Sleep(time.Hour)
		require.Equal(t, 1, strings.Count(logged(), "is large"))
		require.Contains(t, logged(), `"objects"=21 "warnAbove"=20`)
	})
}

// TestRefuseAbove: a read that would start a large collection fails, with the number and the ways
// out. Nothing is kept, and the server has sent hardly any object.
func TestRefuseAbove(t *testing.T) {
	selector, err := labels.Parse("app")
	require.NoError(t, err)
	for name, row := range map[string]struct {
		options cache.Options
		says    string
		lists   int
	}{
		"all namespaces":          {cache.Options{}, "there are 500 objects", 1},
		"one namespace":           {cache.Options{DefaultNamespaces: map[string]cache.Config{"ns1": {}}}, "there are 250 objects", 1},
		"the server does not say": {cache.Options{DefaultLabelSelector: selector}, "there are more than 100", 2},
		"several namespaces":      {cache.Options{DefaultNamespaces: map[string]cache.Config{"ns0": {}, "ns1": {}}}, "there are more than 100", 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := somePods(t, 500)
				c := newCache(t, pods, row.options, controllerruntime.RefuseAbove(100))
				start(t, c)
				for verb, read := range map[string]func(context.Context, cache.Cache) error{"get": func(ctx context.Context, c cache.Cache) error {
					return c.Get(ctx, keyOf("ns1", "p1"), &corev1.Pod{})
				}, "list": reads["List"]} {
					err := read(t.Context(), c)
					require.ErrorIs(t, err, controllerruntime.ErrTooMany, verb)
					require.ErrorContains(t, err, "/v1, Kind=Pod, typed: the read would keep too many objects: "+row.says+", and RefuseAbove permits 100")
				}
				synctest.Wait()
				require.Empty(t, c.Bill())
				require.NoError(t, c.Ready(time.Minute), "no part of the cache has failed")
				require.LessOrEqual(t, len(pods.Server().Requests()), row.lists, "the second read asks nothing")

				time.Sleep(2 * time.Minute) // and objects are deleted
				for i := range 450 {
					pods.Remove(pod(fmt.Sprint("ns", i%2), fmt.Sprint("p", i), "n"))
				}
				require.NoError(t, c.List(t.Context(), &corev1.PodList{}))
				require.Len(t, c.Bill(), 1)
			})
		})
	}
}

// TestRefuseAbovePermitsWhatIsAskedForByName: an informer or an index has all objects, and reads
// find them. It frees a kind that a read was refused for.
func TestRefuseAbovePermitsWhatIsAskedForByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := somePods(t, 500)
		c := newCache(t, pods, cache.Options{}, controllerruntime.RefuseAbove(100))
		start(t, c)
		require.ErrorIs(t, c.List(t.Context(), &corev1.PodList{}), controllerruntime.ErrTooMany)
		_, err := c.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		require.Len(t, list(t, c), 500)
		pods.Disconnect()
		time.Sleep(time.Minute)
		require.Len(t, list(t, c), 500, "later lists are not counted")
	})
}

// TestRefuseAboveWhileAnInformerComes: a read has started the collection, and its list is late. The
// informer that comes meanwhile gets all objects.
func TestRefuseAboveWhileAnInformerComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := somePods(t, 500)
		selector, err := labels.Parse("app")
		require.NoError(t, err)
		c := newCache(t, pods, cache.Options{DefaultLabelSelector: selector}, controllerruntime.RefuseAbove(100))
		start(t, c)
		slow := pods.Delay(time.Minute, listwatchtest.UntilLifted())
		read := make(chan error, 1)
		go func() { read <- c.List(t.Context(), &corev1.PodList{}) }()
		time.Sleep(90 * time.Second) // the question for the number has been answered
		asked := make(chan error, 1)
		go func() {
			_, err := c.GetInformer(t.Context(), &corev1.Pod{})
			asked <- err
		}()
		synctest.Wait()
		slow.Lift()
		require.NoError(t, <-read)
		require.NoError(t, <-asked)
		require.Len(t, list(t, c), 500)
	})
}

// TestRefuseAboveLeavesFailuresToTheRead: if the server does not answer the question, the read says
// why, as ever.
func TestRefuseAboveLeavesFailuresToTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := somePods(t, 5)
		lift := refuse(pods, apierrors.NewForbidden(resourcePods, "", errors.New("no role")))
		c := newCache(t, pods, cache.Options{}, controllerruntime.RefuseAbove(100), controllerruntime.FailFast())
		require.ErrorAs(t, c.List(t.Context(), &corev1.PodList{}), new(*cache.ErrCacheNotStarted))
		start(t, c)
		require.ErrorContains(t, c.List(t.Context(), &corev1.PodList{}), "not synced: forbidden: list pods: ")
		lift()
		time.Sleep(10 * time.Second)
		require.Len(t, list(t, c), 5)
	})
}

// TestReaderFailOnMissingInformer: no read starts a collection, whatever its size, and nothing is
// asked of the server.
func TestReaderFailOnMissingInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := somePods(t, 5)
		c := newCache(t, pods, cache.Options{ReaderFailOnMissingInformer: true}, controllerruntime.RefuseAbove(100))
		start(t, c)
		for _, read := range []string{"Get", "List"} {
			require.ErrorAs(t, reads[read](t.Context(), c), new(*cache.ErrResourceNotCached))
		}
		require.Empty(t, pods.Server().Requests())
		_, err := c.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		require.NoError(t, c.List(t.Context(), &corev1.PodList{}, client.InNamespace("ns0")))
	})
}

func TestBadGuards(t *testing.T) {
	pods := somePods(t, 0)
	for want, option := range map[string]controllerruntime.Option{
		"WarnAbove(-1): give a positive number":                                                  controllerruntime.WarnAbove(-1),
		"RefuseAbove(-2): give a positive number of objects, or set ReaderFailOnMissingInformer": controllerruntime.RefuseAbove(-2),
	} {
		_, err := controllerruntime.NewCacheWith(option)(pods.Server().Config(), cache.Options{Mapper: mapper()})
		require.ErrorContains(t, err, want)
	}
}

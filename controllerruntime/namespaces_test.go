package controllerruntime_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

func inNamespaces(names ...string) map[string]cache.Config {
	all := map[string]cache.Config{}
	for _, name := range names {
		all[name] = cache.Config{}
	}
	return all
}

// TestOneWatch: two namespaces of four are read by one request. Objects of the others are neither
// kept nor told, in the first state, in changes and after an outage; the collection is up to date
// with them.
func TestOneWatch(t *testing.T) {
	for _, watchLists := range []bool{true, false} {
		t.Run(fmt.Sprint("watch lists ", watchLists), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				if !watchLists {
					pods.NoWatchList(listwatchtest.UntilLifted())
				}
				for i := range 40 {
					pods.Create(pod(fmt.Sprint("ns", i%4), fmt.Sprint("p", i), "n"))
				}
				c := newCache(t, pods, cache.Options{DefaultNamespaces: inNamespaces("ns1", "ns2")}, controllerruntime.OneWatch())
				informer, err := c.GetInformer(t.Context(), &corev1.Pod{})
				require.NoError(t, err)
				told := map[string]int{}
				_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
					AddFunc:    func(obj any) { told[obj.(*corev1.Pod).Namespace]++ },
					UpdateFunc: func(_, obj any) { told[obj.(*corev1.Pod).Namespace]++ },
					DeleteFunc: func(obj any) { told[obj.(*corev1.Pod).Namespace]++ },
				})
				require.NoError(t, err)
				start(t, c)
				pods.Server().AwaitWatches(1)
				synctest.Wait() // the handler has its initial list
				require.Len(t, list(t, c), 20)
				require.Len(t, list(t, c, client.InNamespace("ns1")), 10)
				require.Equal(t, 20, c.Bill()[0].Objects)
				require.ErrorContains(t, c.Get(t.Context(), keyOf("ns3", "p3"), &corev1.Pod{}), `the cache keeps no Pod of namespace "ns3"`)

				for i := range 8 {
					pods.Remove(pod(fmt.Sprint("ns", i%4), fmt.Sprint("p", i), "n"))
					pods.Create(pod(fmt.Sprint("ns", i%4), fmt.Sprint("new", i), "n"))
				}
				last := pods.Create(pod("ns0", "last", "n"))
				synctest.Wait()
				var now corev1.PodList
				require.NoError(t, c.List(t.Context(), &now))
				require.Len(t, now.Items, 20)
				require.Equal(t, last.ResourceVersion, now.ResourceVersion, "a change elsewhere moves the version")
				require.Equal(t, map[string]int{"ns1": 14, "ns2": 14}, told)

				pods.Expire()
				pods.Create(pod("ns3", "meanwhile", "n"))
				pods.Create(pod("ns2", "meanwhile", "n"))
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				require.Len(t, list(t, c), 21)
				require.Equal(t, map[string]int{"ns1": 14, "ns2": 15}, told)
				require.NoError(t, c.Ready(3*time.Minute))
			})
		})
	}
}

// TestOneWatchOfEqualNamespacesOnly: by default, and with namespaces of different content, each has
// a watch of its own.
func TestOneWatchOfEqualNamespacesOnly(t *testing.T) {
	selector, err := labels.Parse("app")
	require.NoError(t, err)
	closure := func(n int) toolscache.TransformFunc {
		return func(obj any) (any, error) {
			obj.(*corev1.Pod).GenerateName = fmt.Sprint(n)
			return obj, nil
		}
	}
	shared := closure(1)
	one := []controllerruntime.Option{controllerruntime.OneWatch()}
	for name, row := range map[string]struct {
		own        []controllerruntime.Option
		namespaces map[string]cache.Config
		watches    int
	}{
		"without the option":    {nil, inNamespaces("ns0", "ns1"), 2},
		"equal":                 {one, inNamespaces("ns0", "ns1", "ns2"), 1},
		"selected alike":        {one, map[string]cache.Config{"ns0": {LabelSelector: selector}, "ns1": {LabelSelector: selector}}, 1},
		"selected otherwise":    {one, map[string]cache.Config{"ns0": {LabelSelector: selector}, "ns1": {}}, 2},
		"transformed alike":     {one, map[string]cache.Config{"ns0": {Transform: shared}, "ns1": {Transform: shared}}, 1},
		"transformed otherwise": {one, map[string]cache.Config{"ns0": {Transform: shared}, "ns1": {Transform: closure(2)}}, 2},
		"with all others":       {one, inNamespaces("", "ns1"), 2},
		"one":                   {one, inNamespaces("ns1"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := somePods(t, 10)
				c := newCache(t, pods, cache.Options{DefaultNamespaces: row.namespaces}, row.own...)
				start(t, c)
				require.NotEmpty(t, list(t, c))
				synctest.Wait()
				require.Len(t, pods.Server().Requests(listwatchtest.Watch), row.watches)
			})
		})
	}
}

// TestOneWatchNeedsTheRight: the error is the server's, and says what to mend.
func TestOneWatchNeedsTheRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := somePods(t, 1)
		refuse(pods, apierrors.NewForbidden(resourcePods, "", errors.New("no role")))
		c := newCache(t, pods, cache.Options{DefaultNamespaces: inNamespaces("ns0", "ns1")}, controllerruntime.OneWatch(), controllerruntime.FailFast())
		start(t, c)
		err := c.List(t.Context(), &corev1.PodList{})
		require.True(t, apierrors.IsForbidden(err))
		require.ErrorContains(t, err, "OneWatch needs the right to list and watch all namespaces")
	})
}

// TestOneWatchIsGuarded: RefuseAbove counts the objects of the namespaces, and not those that are
// dropped.
func TestOneWatchIsGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		for i := range 400 {
			pods.Create(pod(fmt.Sprint("ns", i%4), fmt.Sprint("p", i), "n"))
		}
		for permitted, is := range map[int]bool{199: false, 200: true} {
			c := newCache(t, pods, cache.Options{DefaultNamespaces: inNamespaces("ns1", "ns2")}, controllerruntime.OneWatch(), controllerruntime.RefuseAbove(permitted))
			start(t, c)
			err := c.List(t.Context(), &corev1.PodList{})
			require.Equal(t, !is, errors.Is(err, controllerruntime.ErrTooMany), "%v", err)
		}
	})
}

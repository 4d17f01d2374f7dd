//go:build !clientgo035

package clientgo_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// gauges is a provider of client-go's metrics. A series is there from its first mention on.
type gauges struct {
	mu     sync.Mutex
	series map[string]map[string]float64 // by informer, then by metric
}

func (g *gauges) NewQueuedItemMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return g.gauge("queued_items", id)
}

func (g *gauges) NewStoreResourceVersionMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return g.gauge(storeVersion, id)
}

func (g *gauges) NewProcessingLatencyMetric(cache.InformerNameAndResource) cache.HistogramMetric {
	return unobserved{}
}

type unobserved struct{}

func (unobserved) Observe(float64) {}

func (g *gauges) gauge(metric string, id cache.InformerNameAndResource) cache.GaugeMetric {
	made := gauge{g, id.Name() + " " + id.GroupVersionResource().String(), metric}
	made.Set(0)
	return made
}

// of has the metrics of pods under a name.
func (g *gauges) of(informer string) map[string]float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.series[informer+" /v1, Resource=pods"])
}

type gauge struct {
	in       *gauges
	informer string
	metric   string
}

func (g gauge) Set(value float64) {
	g.in.mu.Lock()
	defer g.in.mu.Unlock()
	if g.in.series == nil {
		g.in.series = map[string]map[string]float64{}
	}
	if g.in.series[g.informer] == nil {
		g.in.series[g.informer] = map[string]float64{}
	}
	g.in.series[g.informer][g.metric] = value
}

const storeVersion = "store_resource_version"

var forAll = &gauges{}

// TestNamedInformers: client-go's metrics of an informer with a name are there, and say the same of
// ours. Events that a handler waits for are in no queue of either.
func TestNamedInformers(t *testing.T) {
	cache.SetInformerMetricsProvider(forAll)
	for name, construct := range map[string]func(cache.InformerOptions) func(context.Context){
		"client-go": func(o cache.InformerOptions) func(context.Context) {
			return withHandler(o, cache.NewSharedIndexInformerWithOptions)
		},
		"tributary": func(o cache.InformerOptions) func(context.Context) {
			return withHandler(o, clientgo.NewSharedIndexInformerWithOptions)
		},
		"tributary, the pair": func(o cache.InformerOptions) func(context.Context) {
			_, controller := clientgo.NewInformerWithOptions(o)
			return controller.RunWithContext
		},
	} {
		t.Run(name+"/provider for all", func(t *testing.T) {
			if name == "client-go" {
				t.Skip("its release 0.36 has no metric of the store then")
			}
			runNamed(t, cache.InformerOptions{}, forAll, construct)
		})
		t.Run(name+"/provider of its own", func(t *testing.T) {
			own := &gauges{}
			runNamed(t, cache.InformerOptions{InformerMetricsProvider: own}, own, construct)
		})
	}
}

// runNamed runs an informer with a handler that does not return from its first event.
func runNamed(t *testing.T, o cache.InformerOptions, told *gauges, construct func(cache.InformerOptions) func(context.Context)) {
	synctest.Test(t, func(t *testing.T) {
		informerName, err := cache.NewInformerName(t.Name())
		require.NoError(t, err)
		t.Cleanup(informerName.Release)
		blocked := make(chan struct{})
		release := sync.OnceFunc(func() { close(blocked) })
		pods := listwatchtest.New(t, listwatchtest.Pods())
		o.ListerWatcher, o.ObjectType = listwatch.ToClientGo(pods.ListerWatcher()), &corev1.Pod{}
		o.Handler = cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-blocked }}
		o.Identifier = informerName.WithResource(corev1.SchemeGroupVersion.WithResource("pods"))
		pods.Create(onNode("ns", "a", "n1"))
		stop := running(t, construct(o))
		t.Cleanup(release)
		pods.Server().AwaitWatches(1)
		for _, name := range []string{"b", "c", "d"} {
			pods.Create(onNode("ns", name, "n1"))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, map[string]float64{"queued_items": 0, storeVersion: 5}, told.of(t.Name()))
		release()
		pods.Create(onNode("ns", "e", "n1"))
		synctest.Wait()
		stop()
		require.Equal(t, map[string]float64{"queued_items": 0, storeVersion: 6}, told.of(t.Name()))
	})
}

// TestAGeneratedFactoryWithAName: ours take the resources of the factory's name, each by the name
// that the API has.
func TestAGeneratedFactoryWithAName(t *testing.T) {
	name, err := cache.NewInformerName(t.Name())
	require.NoError(t, err)
	t.Cleanup(name.Release)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	require.NoError(t, err)
	clientgo.Factory(informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithInformerName(name)),
		[]runtime.Object{&corev1.Pod{}, &networkingv1.Ingress{}})
	require.False(t, name.WithResource(corev1.SchemeGroupVersion.WithResource("pods")).Reserved())
	require.False(t, name.WithResource(networkingv1.SchemeGroupVersion.WithResource("ingresses")).Reserved())
	require.True(t, name.WithResource(corev1.SchemeGroupVersion.WithResource("secrets")).Reserved(), "still free")
}

func withHandler(
	o cache.InformerOptions,
	construct func(cache.ListerWatcher, runtime.Object, cache.SharedIndexInformerOptions) cache.SharedIndexInformer,
) func(context.Context) {
	made := construct(o.ListerWatcher, o.ObjectType, cache.SharedIndexInformerOptions{
		Identifier: o.Identifier, InformerMetricsProvider: o.InformerMetricsProvider,
	})
	if _, err := made.AddEventHandler(o.Handler); err != nil {
		panic(err)
	}
	return made.RunWithContext
}

// TestHasSyncedChecker: informers, handlers and controllers are awaited without polling, and named.
func TestHasSyncedChecker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		theirs := listwatch.ToClientGo(pods.ListerWatcher())
		shared := clientgo.NewInformer(theirs, &corev1.Pod{}, 0, nil)
		handler, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{})
		require.NoError(t, err)
		queue := cache.NewRealFIFO(cache.MetaNamespaceKeyFunc, cache.NewStore(cache.MetaNamespaceKeyFunc), nil)
		controller := clientgo.New(&cache.Config{
			ListerWatcher: theirs, ObjectType: &corev1.Pod{}, Queue: queue, Process: func(any, bool) error { return nil },
		})
		checkers := []cache.DoneChecker{
			shared.HasSyncedChecker(), handler.HasSyncedChecker(), shared.GetController().HasSyncedChecker(), controller.HasSyncedChecker(),
		}
		for _, checker := range checkers {
			require.NotEmpty(t, checker.Name())
			select {
			case <-checker.Done():
				require.Fail(t, "too early", checker.Name())
			default:
			}
		}
		running(t, shared.RunWithContext)
		running(t, controller.RunWithContext)
		require.True(t, cache.WaitFor(t.Context(), "", checkers...))
	})
}

package dynamicinformer_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo/dynamicinformer"
	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/store/packed"
)

func TestMain(m *testing.M) {
	sharing.FirstBytes = 0 // so that two objects are enough
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

var pods = corev1.SchemeGroupVersion.WithResource("pods")

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeSelector: map[string]string{"disk": "fast"}},
	}
}

// clients are the three kinds of dynamic client that a factory meets.
var clients = map[string]func(t *testing.T) dynamic.Interface{
	"NewForConfig": func(t *testing.T) dynamic.Interface { return made(t, dynamicinformer.NewForConfig) },
	"client-go": func(t *testing.T) dynamic.Interface {
		return made(t, func(config *rest.Config) (dynamic.Interface, error) { return dynamic.NewForConfig(config) })
	},
	"fake": func(*testing.T) dynamic.Interface {
		return fake.NewSimpleDynamicClient(scheme.Scheme, pod("ns", "a"), pod("ns", "b"), pod("other", "a"))
	},
}

func made(t *testing.T, newForConfig func(*rest.Config) (dynamic.Interface, error)) dynamic.Interface {
	served := listwatchtest.New(t, listwatchtest.Pods())
	for _, p := range []*corev1.Pod{pod("ns", "a"), pod("ns", "b"), pod("other", "a")} {
		served.Create(p)
	}
	client, err := newForConfig(served.Server().Config())
	require.NoError(t, err)
	return client
}

// TestFactory: listers, handlers, indexes, namespaces and selectors, with each kind of client. With
// a client of this package, equal parts of two objects are one.
func TestFactory(t *testing.T) {
	for name, newClient := range clients {
		t.Run(name, func(t *testing.T) {
			client := newClient(t)
			f := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
			all := f.ForResource(pods)
			require.Same(t, all.Informer(), f.ForResource(pods).Informer())
			added := make(chan string, 3)
			_, err := all.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				added <- obj.(*unstructured.Unstructured).GetName()
			}})
			require.NoError(t, err)
			byApp := func(obj any) ([]string, error) {
				return []string{obj.(*unstructured.Unstructured).GetLabels()["app"]}, nil
			}
			indexed := dynamicinformer.NewFilteredDynamicInformer(client, pods, "", 0, cache.Indexers{"app": byApp}, nil)

			narrow := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, time.Hour, "ns", func(o *metav1.ListOptions) {
				o.LabelSelector = "app=a"
			})
			narrow.ForResource(pods)
			ctx, cancel := context.WithCancel(context.Background())
			t.Cleanup(func() { cancel(); f.Shutdown(); narrow.Shutdown() })
			f.Start(ctx.Done())
			f.Start(ctx.Done())
			narrow.Start(ctx.Done())
			require.True(t, f.WaitForCacheSync(ctx.Done())[pods])
			require.True(t, narrow.WaitForCacheSync(ctx.Done())[pods])
			for range 3 {
				<-added
			}
			require.ElementsMatch(t, []string{"ns/a", "ns/b", "other/a"}, all.Informer().GetStore().ListKeys())
			found, err := narrow.ForResource(pods).Lister().List(labels.Everything())
			require.NoError(t, err)
			require.Len(t, found, 1)

			ended := make(chan struct{})
			go func() { defer close(ended); indexed.Informer().RunWithContext(ctx) }()
			t.Cleanup(func() { cancel(); <-ended })
			require.True(t, cache.WaitForCacheSync(ctx.Done(), indexed.Informer().HasSynced))
			byIndex, err := indexed.Informer().GetIndexer().ByIndex("app", "a")
			require.NoError(t, err)
			require.Len(t, byIndex, 2)

			a, err := all.Lister().ByNamespace("ns").Get("a")
			require.NoError(t, err)
			b, err := all.Lister().ByNamespace("ns").Get("b")
			require.NoError(t, err)
			require.Equal(t, name == "NewForConfig", nodeSelector(a).Pointer() == nodeSelector(b).Pointer(), "one map")
		})
	}
}

func nodeSelector(obj any) reflect.Value {
	spec := obj.(*unstructured.Unstructured).Object["spec"].(map[string]any)
	return reflect.ValueOf(spec["nodeSelector"])
}

// TestPacked: the objects of a packed resource are decoded when they are read, and share nothing.
func TestPacked(t *testing.T) {
	for name, newClient := range clients {
		t.Run(name, func(t *testing.T) {
			f := dynamicinformer.NewDynamicSharedInformerFactoryWithOptions(newClient(t), 0, dynamicinformer.WithPacked(packed.Like, pods))
			all := f.ForResource(pods)
			ctx, cancel := context.WithCancel(context.Background())
			t.Cleanup(func() { cancel(); f.Shutdown() })
			f.Start(ctx.Done())
			require.True(t, f.WaitForCacheSync(ctx.Done())[pods])
			found, err := all.Lister().ByNamespace("ns").List(labels.Everything())
			require.NoError(t, err)
			require.Len(t, found, 2)
			again, err := all.Lister().ByNamespace("ns").List(labels.Everything())
			require.NoError(t, err)
			require.ElementsMatch(t, found, again)
			for _, obj := range again {
				require.NotSame(t, found[0], obj, "it was decoded anew")
			}
		})
	}
}

// TestShutdown: a factory that was shut down starts nothing, and a wait ends with its channel.
func TestShutdown(t *testing.T) {
	f := dynamicinformer.NewDynamicSharedInformerFactory(clients["fake"](t), 0)
	i := f.ForResource(pods).Informer()
	require.Empty(t, f.WaitForCacheSync(nil), "nothing was started")
	f.Shutdown()
	f.Start(nil)
	require.Empty(t, f.WaitForCacheSync(nil))
	require.False(t, i.HasSynced())
}

// TestGeneratedNames: a fake makes no names of generateName.
func TestGeneratedNames(t *testing.T) {
	f := dynamicinformer.NewDynamicSharedInformerFactory(fake.NewSimpleDynamicClient(scheme.Scheme, pod("ns", "")), 0)
	shared := f.ForResource(pods).Informer()
	ctx, cancel := context.WithCancel(t.Context())
	f.Start(ctx.Done())
	defer f.Shutdown()
	defer cancel()
	require.True(t, cache.WaitForCacheSync(ctx.Done(), shared.HasSynced))
	require.Equal(t, []string{"ns/"}, shared.GetStore().ListKeys())
}

func TestBadSelectors(t *testing.T) {
	f := dynamicinformer.NewFilteredDynamicSharedInformerFactory(clients["fake"](t), 0, "", func(o *metav1.ListOptions) {
		o.LabelSelector = "a=b=c"
	})
	require.Panics(t, func() { f.ForResource(pods) })
	_, err := dynamicinformer.NewForConfig(&rest.Config{Host: "://"})
	require.Error(t, err)
}

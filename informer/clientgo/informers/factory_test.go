package informers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgo "k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	adapted "github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/informer/clientgo/informers"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}}}
}

// start runs a factory until the test ends, and waits for its informers.
func start(t *testing.T, f informers.SharedInformerFactory) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); f.Shutdown() })
	f.Start(ctx.Done())
	for of, synced := range f.WaitForCacheSync(t.Context().Done()) {
		require.True(t, synced, of)
	}
}

// requireOurs looks into the factory: what its groups return is wrapped by client-go.
func requireOurs(t *testing.T, f informers.SharedInformerFactory, obj runtime.Object) {
	t.Helper()
	_, ours := adapted.StatusOf(f.InformerFor(obj, nil)) // it is there
	require.True(t, ours, "an informer of client-go's")
}

// TestFactory: listers, handlers, namespaces, selectors and transforms, on a server and on
// client-go's fake clientset.
func TestFactory(t *testing.T) {
	for name, clientset := range map[string]func(*testing.T) kubernetes.Interface{
		"server": func(t *testing.T) kubernetes.Interface {
			pods := listwatchtest.New(t, listwatchtest.Pods())
			for _, p := range []*corev1.Pod{pod("ns", "a"), pod("ns", "b"), pod("other", "a")} {
				pods.Create(p)
			}
			client, err := kubernetes.NewForConfig(pods.Server().Config())
			require.NoError(t, err)
			return client
		},
		"fake": func(*testing.T) kubernetes.Interface {
			return fake.NewClientset(pod("ns", "a"), pod("ns", "b"), pod("other", "a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := informers.NewFilteredSharedInformerFactory(clientset(t), 0, "other", nil)
			f.Core().V1().Pods().Informer()
			start(t, f)
			all, err := f.Core().V1().Pods().Lister().List(labels.Everything())
			require.NoError(t, err)
			require.Len(t, all, 1)
			for _, row := range []struct {
				options []informers.SharedInformerOption
				want    []string
			}{
				{nil, []string{"ns/a", "ns/b", "other/a"}},
				{[]informers.SharedInformerOption{informers.WithNamespace("ns")}, []string{"ns/a", "ns/b"}},
				{[]informers.SharedInformerOption{informers.WithNamespace("ns"), informers.WithTweakListOptions(func(o *metav1.ListOptions) {
					o.LabelSelector = "app=a"
				})}, []string{"ns/a"}},
				{[]informers.SharedInformerOption{informers.WithTransform(func(obj any) (any, error) {
					obj.(*corev1.Pod).Spec.NodeName = "changed"
					return obj, nil
				})}, []string{"ns/a@changed", "ns/b@changed", "other/a@changed"}},
			} {
				f := informers.NewSharedInformerFactoryWithOptions(clientset(t), 0, row.options...)
				pods := f.Core().V1().Pods()
				_, ours := adapted.StatusOf(pods.Informer())
				require.True(t, ours, "through the wrapper of client-go 0.37, too")
				requireOurs(t, f, &corev1.Pod{})
				added := make(chan string, 10)
				_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
					added <- obj.(*corev1.Pod).Name
				}})
				require.NoError(t, err)
				start(t, f)
				all, err := pods.Lister().List(labels.Everything())
				require.NoError(t, err)
				var got []string
				for _, p := range all {
					key := p.Namespace + "/" + p.Name
					if p.Spec.NodeName != "" {
						key += "@" + p.Spec.NodeName
					}
					got = append(got, key)
					<-added
				}
				require.ElementsMatch(t, row.want, got)
			}
		})
	}
}

// TestEveryResource: for each built-in type, in all namespaces and in one, the factory asks for
// what client-go's asks for.
func TestEveryResource(t *testing.T) {
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil // they would print each refusal
	defer func() { utilruntime.ErrorHandlers = before }()
	for _, namespace := range []string{"", "ns"} {
		asked := func(newFactory func(kubernetes.Interface) clientgo.SharedInformerFactory, check func(clientgo.SharedInformerFactory, runtime.Object)) []string {
			paths := make(chan string, 10000)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				paths <- r.URL.Path
				http.Error(w, "not today", http.StatusForbidden)
			}))
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
			require.NoError(t, err)
			f := newFactory(client)
			count := 0
			for kind := range scheme.Scheme.AllKnownTypes() {
				resource, _ := meta.UnsafeGuessKindToResource(kind)
				generic, err := f.ForResource(resource)
				if err != nil {
					continue // not a resource with an informer
				}
				count++
				generic.Informer()
				obj, err := scheme.Scheme.New(kind)
				require.NoError(t, err)
				check(f, obj)
			}
			require.Greater(t, count, 50)
			ctx, cancel := context.WithCancel(t.Context())
			defer f.Shutdown()
			defer cancel()
			f.Start(ctx.Done())
			found := map[string]bool{}
			for len(found) < count {
				found[<-paths] = true
			}
			var all []string
			for path := range found {
				all = append(all, path)
			}
			slices.Sort(all)
			return all
		}
		theirs := asked(func(client kubernetes.Interface) clientgo.SharedInformerFactory {
			return clientgo.NewSharedInformerFactoryWithOptions(client, 0, clientgo.WithNamespace(namespace))
		}, func(clientgo.SharedInformerFactory, runtime.Object) {})
		ours := asked(func(client kubernetes.Interface) clientgo.SharedInformerFactory {
			return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
		}, func(f clientgo.SharedInformerFactory, obj runtime.Object) { requireOurs(t, f, obj) })
		require.Equal(t, theirs, ours)
	}
}

// TestEveryGroup: the informers of each group are ours. Those of a group that the oldest client-go
// lacks are client-go's; the factory narrows, starts and ends them.
func TestEveryGroup(t *testing.T) {
	client := fake.NewClientset()
	f := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("ns"))
	asked := 0
	groups := reflect.TypeFor[informers.SharedInformerFactory]()
	for i := range groups.NumMethod() {
		group := groups.Method(i)
		if group.Type.NumOut() != 1 || !strings.HasPrefix(group.Type.Out(0).PkgPath(), "k8s.io/client-go/informers/") || group.Type.NumIn() > 0 {
			continue
		}
		versions := reflect.ValueOf(f).MethodByName(group.Name).Call(nil)[0]
		for v := range versions.NumMethod() {
			resources := versions.Method(v).Call(nil)[0]
			for r := range resources.NumMethod() {
				resources.Method(r).Call(nil)[0].MethodByName("Informer").Call(nil)
				asked++
			}
		}
	}
	require.Greater(t, asked, 50)
	start(t, f)
	made := f.WaitForCacheSync(t.Context().Done())
	require.Len(t, made, asked)
	for of := range made {
		if strings.HasPrefix(of.Elem().PkgPath(), "k8s.io/api/lifecycle/") {
			continue
		}
		requireOurs(t, f, reflect.New(of.Elem()).Interface().(runtime.Object))
	}
	for _, action := range client.Actions() {
		if action.GetResource().Group == "lifecycle.k8s.io" {
			require.Equal(t, "ns", action.GetNamespace())
		}
	}
}

// TestOptions: what a factory refuses, and what it leaves to client-go.
func TestOptions(t *testing.T) {
	require.PanicsWithError(t, `clientgo: Tweak: field selector "a": invalid selector: 'a'; can't understand 'a'`, func() {
		informers.NewSharedInformerFactoryWithOptions(fake.NewClientset(), 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = "a"
		}))
	})
	f := informers.NewSharedInformerFactory(fake.NewClientset(), time.Hour)
	_, err := f.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "unknown"})
	require.Error(t, err)
	own := cache.NewSharedIndexInformer(&cache.ListWatch{}, &metav1.PartialObjectMetadata{}, 0, nil)
	require.Same(t, own, f.InformerFor(&metav1.PartialObjectMetadata{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return own
	}))
}

// TestAnInformerOfClientGos is named in the log, once for its type, and by Report; one of ours is
// not.
func TestAnInformerOfClientGos(t *testing.T) {
	var lines []string
	klog.SetLogger(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	t.Cleanup(klog.ClearLogger) // after the informers have ended
	f := informers.NewSharedInformerFactory(fake.NewClientset(pod("ns", "a"), pod("ns", "b"), pod("other", "a")), 0)
	require.Empty(t, adapted.Report(f))
	for range 2 {
		f.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			return coreinformers.NewPodInformer(client, "ns", resync, nil)
		})
		f.InformerFor(&corev1.Secret{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			return adapted.FromClientset(client, &corev1.Secret{}, resync)
		})
		f.Core().V1().ConfigMaps().Informer()
	}
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], `call clientgo.FromClientset in its constructor" "type"="*v1.Pod"`)
	klog.ClearLogger() // client-go's reflectors write to it from now on
	start(t, f)
	report := adapted.Report(f)
	require.Equal(t, "[*v1.ConfigMap: 0 objects, synced *v1.Pod: 2 objects, client-go's: call clientgo.FromClientset in its constructor "+
		"*v1.Secret: 0 objects, synced]", fmt.Sprint(report))
	require.Nil(t, report[1].Ours)
	require.True(t, report[1].Synced)
}

// TestAProgramsOwnInformer: kube-scheduler puts an informer with a selector and a transform into
// the factory, and reads it by the factory's lister.
func TestAProgramsOwnInformer(t *testing.T) {
	trim := func(obj any) (any, error) {
		obj.(*corev1.Pod).ManagedFields = nil
		return obj, nil
	}
	for name, newFactory := range map[string]func(kubernetes.Interface, time.Duration) informers.SharedInformerFactory{
		"client-go": clientgo.NewSharedInformerFactory, "ours": informers.NewSharedInformerFactory,
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}}
			client := fake.NewClientset(pod)
			if _, newer := clientgo.NewSharedInformerFactory(client, 0).(interface{ StartWithContext(context.Context) }); !newer {
				t.Skip("client-go's factory sets its own transform, of none, before its release 0.36")
			}
			f := newFactory(client, 0)
			f.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
				own := coreinformers.NewPodInformer(client, "ns", resync, nil)
				require.NoError(t, own.SetTransform(trim))
				return own
			})
			start(t, f)
			f.WaitForCacheSync(t.Context().Done())
			held, err := f.Core().V1().Pods().Lister().Pods("ns").Get("a")
			require.NoError(t, err)
			require.Empty(t, held.ManagedFields)
		})
	}
}

package clientgo_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/listwatch"
)

// TestGeneratedNames: client-go's fake clientset makes no names of generateName, and client-go's
// informers keep the objects under the key of their namespace.
func TestGeneratedNames(t *testing.T) {
	for name, newInformer := range map[string]func(kubernetes.Interface) cache.SharedIndexInformer{
		"client-go": func(client kubernetes.Interface) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformer(listerOfPods(client), &corev1.Pod{}, 0, nil)
		},
		"NewInformer": func(client kubernetes.Interface) cache.SharedIndexInformer {
			return clientgo.NewInformer(listerOfPods(client), &corev1.Pod{}, 0, nil)
		},
		"FromClientset": func(client kubernetes.Interface) cache.SharedIndexInformer {
			return clientgo.FromClientset(client, &corev1.Pod{}, 0)
		},
		"Union": func(client kubernetes.Interface) cache.SharedIndexInformer {
			union, pods := informer.NewUnion[*corev1.Pod](), client.CoreV1().Pods("")
			_, err := union.Add("all", listwatch.FromFuncs[*corev1.Pod](pods.List, pods.Watch, adapters.AsClientGo.(listwatch.FuncsOption), listwatch.WithoutWatchList()))
			require.NoError(t, err)
			return clientgo.Union(union)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewSimpleClientset()
				pods := client.CoreV1().Pods("ns")
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "web-"}}
				_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
				require.NoError(t, err)
				shared, told := newInformer(client), &transcript{}
				_, err = shared.AddEventHandler(told)
				require.NoError(t, err)
				running(t, shared.RunWithContext)
				synced(t, shared)
				synctest.Wait()

				_, err = pods.Update(t.Context(), pod, metav1.UpdateOptions{})
				require.NoError(t, err)
				synctest.Wait()
				require.NoError(t, pods.Delete(t.Context(), "", metav1.DeleteOptions{}))
				synctest.Wait()
				_, err = pods.Create(t.Context(), pod, metav1.CreateOptions{})
				require.NoError(t, err)
				synctest.Wait()
				require.Equal(t, []string{"add @ initial=true", "update @ to @", "delete @", "add @ initial=false"}, told.take())
				require.Equal(t, []string{"ns/"}, shared.GetStore().ListKeys())
				held, err := listers.NewPodLister(shared.GetIndexer()).Pods("ns").Get("")
				require.NoError(t, err)
				require.Equal(t, "web-", held.GenerateName)
				require.NoError(t, shared.GetStore().Add(&corev1.Pod{}))
				require.ElementsMatch(t, []string{"", "ns/"}, shared.GetStore().ListKeys())
			})
		})
	}
}

func listerOfPods(client kubernetes.Interface) cache.ListerWatcher {
	pods := client.CoreV1().Pods("")
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: pods.Watch,
	}, client)
}

// TestAnEmptyAnswerIsAnEmptyList: servers in tests answer a list with {}. client-go's informers are
// synced by it, and so are ours behind its interfaces. A source of listwatch takes it for no
// answer.
func TestAnEmptyAnswerIsAnEmptyList(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			_, _ = w.Write([]byte("{}"))
			return
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	for name, pods := range map[string]cache.SharedIndexInformer{
		"client-go": cache.NewSharedIndexInformer(listerOfPods(listsOnly{client}), &corev1.Pod{}, 0, nil),
		"ours":      clientgo.FromClientset(listsOnly{client}, &corev1.Pod{}, 0),
	} {
		t.Run(name, func(t *testing.T) {
			running(t, pods.RunWithContext)
			synced(t, pods)
			require.Empty(t, pods.GetStore().List())
		})
	}
	list := listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods").List(t.Context(), metav1.ListOptions{})
	var refused error
	for _, err := range list.Items {
		refused = err
	}
	require.ErrorContains(t, refused, "JSON that is no list")
}

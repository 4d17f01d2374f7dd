package informers_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clientgo "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	adapted "github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/informer/clientgo/informers"
	"github.com/tributary-go/tributary/internal/race"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

func onNode(node string, p *corev1.Pod) *corev1.Pod {
	p.Labels["node"] = node
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "image"}}
	return p
}

func keysOf(t *testing.T, objects []any) (keys []string) {
	t.Helper()
	for _, obj := range objects {
		require.IsType(t, &corev1.Pod{}, obj)
		key, err := cache.MetaNamespaceKeyFunc(obj)
		require.NoError(t, err)
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// TestPackedFactory: listers, indexes, transforms and handlers read what packed bytes hold, and a
// handler by metadata decodes nothing.
func TestPackedFactory(t *testing.T) {
	server := listwatchtest.New(t, listwatchtest.Pods())
	of, err := kubernetes.NewForConfig(server.Server().Config())
	require.NoError(t, err)
	for name, clientset := range map[string]kubernetes.Interface{"server": of, "fake": fake.NewClientset()} {
		t.Run(name, func(t *testing.T) {
			for _, p := range []*corev1.Pod{onNode("n1", pod("ns", "a")), onNode("n2", pod("ns", "b")), onNode("n1", pod("other", "a"))} {
				_, err := clientset.CoreV1().Pods(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{})
				require.NoError(t, err)
			}
			f := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithPacked(packed.Like, &corev1.Pod{}),
				informers.WithTransform(func(obj any) (any, error) {
					obj.(*corev1.Pod).Annotations = map[string]string{"seen": "yes"}
					return obj, nil
				}))
			pods := f.Core().V1().Pods()
			require.NoError(t, pods.Informer().AddIndexers(cache.Indexers{"node": func(obj any) ([]string, error) {
				return []string{obj.(*corev1.Pod).Labels["node"]}, nil
			}}))
			whole, byMetadata := make(chan string, 16), make(chan string, 16)
			handler := func(told chan string, isPod bool) cache.ResourceEventHandlerFuncs {
				say := func(what string, obj any) {
					key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
					if _, ok := obj.(*corev1.Pod); err != nil || ok != isPod {
						what = fmt.Sprintf("%s of a %T (%v)", what, obj, err)
					}
					told <- what + " " + key
				}
				return cache.ResourceEventHandlerFuncs{
					AddFunc:    func(obj any) { say("add", obj) },
					UpdateFunc: func(_, obj any) { say("update", obj) },
					DeleteFunc: func(obj any) { say("delete", obj) },
				}
			}
			_, err := pods.Informer().AddEventHandler(handler(whole, true))
			require.NoError(t, err)
			_, err = pods.Informer().AddEventHandler(adapted.ByMetadata(handler(byMetadata, false)))
			require.NoError(t, err)
			_, err = pods.Informer().AddEventHandler(adapted.ByMetadata(nil))
			require.ErrorContains(t, err, "the handler is nil")
			start(t, f)
			next := func() string {
				one := <-whole
				require.Equal(t, one, <-byMetadata)
				return one
			}
			initial := []string{<-whole, <-whole, <-whole, <-byMetadata, <-byMetadata, <-byMetadata}
			slices.Sort(initial[:3])
			slices.Sort(initial[3:])
			require.Equal(t, []string{"add ns/a", "add ns/b", "add other/a"}, initial[:3])
			require.Equal(t, initial[:3], initial[3:])

			one, err := pods.Lister().Pods("ns").Get("a")
			require.NoError(t, err)
			require.Equal(t, "n1", one.Labels["node"])
			require.Equal(t, map[string]string{"seen": "yes"}, one.Annotations)
			again, err := pods.Lister().Pods("ns").Get("a")
			require.NoError(t, err)
			require.Same(t, one, again, "it is hot")
			all, err := pods.Lister().Pods("ns").List(labels.Everything())
			require.NoError(t, err)
			require.Len(t, all, 2)
			onOne := func() []string {
				found, err := pods.Informer().GetIndexer().ByIndex("node", "n1")
				require.NoError(t, err)
				return keysOf(t, found)
			}
			require.Equal(t, []string{"ns/a", "other/a"}, onOne())

			moved := onNode("n1", pod("ns", "b"))
			_, err = clientset.CoreV1().Pods("ns").Update(t.Context(), moved, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.Equal(t, "update ns/b", next())
			require.Equal(t, []string{"ns/a", "ns/b", "other/a"}, onOne())
			require.NoError(t, clientset.CoreV1().Pods("ns").Delete(t.Context(), "a", *metav1.NewDeleteOptions(0)))
			told := next()
			for ; told == "update ns/a"; told = next() { // a server marks a pod before it goes
			}
			require.Equal(t, "delete ns/a", told)
			require.Equal(t, []string{"ns/b", "other/a"}, onOne())
			keys := pods.Informer().GetStore().ListKeys()
			slices.Sort(keys)
			require.Equal(t, []string{"ns/b", "other/a"}, keys)
		})
	}
	require.Panics(t, func() {
		var none func(adapted.Object) func(...store.AnyIndex[adapted.Object]) *packed.Store[adapted.Object]
		informers.NewSharedInformerFactoryWithOptions(of, 0, informers.WithPacked(none))
	})
}

// TestFactoriesThatTakeLess compares a factory's copy with that of a packed kind, and what a slim
// transform leaves with the copy of client-go's factory.
func TestFactoriesThatTakeLess(t *testing.T) {
	// The server is in this heap: it keeps nothing of what it sends.
	server := listwatchtest.New(t, listwatchtest.Pods(), watchcache.WithListBytes(0))
	for i := range 2000 {
		p := onNode(fmt.Sprint("n", i%7), pod("ns", fmt.Sprintf("pod-%04d", i)))
		p.Annotations = map[string]string{"note": strings.Repeat(fmt.Sprint("of ", i, ". "), 100)}
		p.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{},
		}}
		for j := range 20 { // which two pods have in common
			p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("ENV_", j), Value: fmt.Sprint("of ", i/2, " the value ", j)})
		}
		server.Create(p)
	}
	client, err := kubernetes.NewForConfig(server.Server().Config())
	require.NoError(t, err)
	heap := func() int {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int(s.HeapAlloc)
	}
	takes := func(newFactory func() informers.SharedInformerFactory) int {
		before := heap()
		f := newFactory()
		i := f.Core().V1().Pods().Informer()
		start(t, f)
		// The index holds no object.
		found, err := i.GetIndexer().Index(cache.NamespaceIndex, pod("ns", ""))
		require.NoError(t, err)
		require.Len(t, found, 2000)
		clear(found)
		took := heap() - before
		runtime.KeepAlive(f)
		return took
	}
	slims := func(obj any) (any, error) {
		p := obj.(*corev1.Pod)
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion}}, nil
	}
	ours := func(optionList ...informers.SharedInformerOption) func() informers.SharedInformerFactory {
		return func() informers.SharedInformerFactory {
			return informers.NewSharedInformerFactoryWithOptions(client, 0, optionList...)
		}
	}
	theirs := func() informers.SharedInformerFactory {
		return clientgo.NewSharedInformerFactoryWithOptions(client, 0, clientgo.WithTransform(slims))
	}
	plain, packed := takes(ours()), takes(ours(informers.WithPacked(packed.Like)))
	slim, clientGo := takes(ours(informers.WithTransform(slims))), takes(theirs)
	for range 4 { // what is decoded meanwhile is remembered: in the least, the fewest
		slim = min(slim, takes(ours(informers.WithTransform(slims))))
	}
	t.Logf("plain %d KB, packed %d KB; slim %d KB, client-go's %d KB", plain>>10, packed>>10, slim>>10, clientGo>>10)
	require.Less(t, packed, plain/2)
	if !race.Enabled { // it holds memory of its own
		require.Less(t, slim, clientGo+300<<10)
	}
}

package controllerruntime_test

import (
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// The pods of the cache are kept as packed bytes. Each read decodes a pod, which is the reader's.
func ExamplePacked() {
	newCache := controllerruntime.NewCacheWith(controllerruntime.Packed(packed.Like, &corev1.Pod{}))
	_ = newCache // ctrl.Options{NewCache: newCache}
}

// TestPackedCaches runs the tests of this package with all kinds packed. Left out are those of what
// differs: the memory of decoded objects, a transform before each read, reads that share, and a
// store of the test's own.
func TestPackedCaches(t *testing.T) {
	if os.Getenv(packAll) != "" {
		t.Skip("all kinds are packed")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), self, "-test.skip", "^(TestBill|TestSelectorsBeforeCopies|TestCopies|TestTransforms|TestPackedLabelsAreReadAtRest)$|Example|Fuzz")
	run.Env = append(os.Environ(), packAll+"=1")
	out, err := run.CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestPackedReadsAreOwn: an object of a packed kind is the reader's own in each form, states its
// kind, and is the same without packing.
func TestPackedReadsAreOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		for i := range 5 {
			pods.Create(pod("ns", fmt.Sprint("p", i), "n1"))
		}
		c := newCache(t, pods, cache.Options{}, controllerruntime.Packed(packed.Like, &corev1.Pod{}))
		plain := newCache(t, pods, cache.Options{})
		start(t, c)
		start(t, plain)
		key := client.ObjectKey{Namespace: "ns", Name: "p1"}
		metadata, tree := &metav1.PartialObjectMetadata{}, &unstructured.Unstructured{}
		metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		tree.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		for _, form := range []client.Object{&corev1.Pod{}, metadata, tree} {
			want, got := form.DeepCopyObject().(client.Object), form.DeepCopyObject().(client.Object)
			require.NoError(t, plain.Get(t.Context(), key, want))
			require.NoError(t, c.Get(t.Context(), key, got))
			require.Equal(t, want, got)
			got.GetLabels()["app"] = "mine" // of a tree, a copy
			got.SetLabels(map[string]string{"app": "mine"})
			require.NoError(t, c.Get(t.Context(), key, got))
			require.Equal(t, want, got, "what a reader writes is not kept")
		}
		var want, got corev1.PodList
		require.NoError(t, plain.List(t.Context(), &want, client.MatchingLabels{"app": "p2"}))
		require.NoError(t, c.List(t.Context(), &got, client.MatchingLabels{"app": "p2"}))
		require.Equal(t, want, got)
		require.Len(t, got.Items, 1)
		got.Items[0].Labels["app"] = "mine"
		require.NoError(t, c.List(t.Context(), &got, client.MatchingLabels{"app": "p2"}))
		require.Equal(t, want, got)
	})
}

// TestPackedNamespaces: a kind of several namespaces is packed too, with a watch for each or one
// for all. A reader's object is its own, whatever the cache's options say.
func TestPackedNamespaces(t *testing.T) {
	for name, own := range map[string][]controllerruntime.Option{"a watch for each": nil, "one watch": {controllerruntime.OneWatch()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				for i := range 12 {
					pods.Create(pod(fmt.Sprint("ns", i%4), fmt.Sprint("p", i), "n1"))
				}
				shared := true
				c := newCache(t, pods, cache.Options{DefaultNamespaces: inNamespaces("ns1", "ns2"), DefaultUnsafeDisableDeepCopy: &shared},
					append(own, controllerruntime.Packed(packed.Like, &corev1.Pod{}))...)
				require.NoError(t, c.IndexField(t.Context(), &corev1.Pod{}, "node", func(obj client.Object) []string {
					return []string{obj.(*corev1.Pod).Spec.NodeName}
				}))
				start(t, c)
				var got corev1.Pod
				require.NoError(t, c.Get(t.Context(), keyOf("ns1", "p1"), &got))
				require.Empty(t, got.Kind, "an object that is not copied states none")
				got.Labels["app"] = "mine"
				require.NoError(t, c.Get(t.Context(), keyOf("ns1", "p1"), &got))
				require.Equal(t, "p1", got.Labels["app"], "what a reader writes is not kept")
				require.Len(t, list(t, c), 6)
				require.Equal(t, []string{"ns2/p6"}, list(t, c, client.InNamespace("ns2"), client.MatchingLabels{"app": "p6"}))
				require.Len(t, list(t, c, client.MatchingFields{"node": "n1"}), 6)
				moved := pod("ns2", "new", "n2")
				pods.Create(moved)
				synctest.Wait()
				require.Equal(t, []string{"ns2/new"}, list(t, c, client.MatchingFields{"node": "n2"}))
				require.Equal(t, 7, c.Bill()[0].Objects)
				require.NoError(t, c.Ready(time.Minute))
			})
		})
	}
}

// TestPackedKinds: a read of a packed kind states the kind of its object, unless it asks for one
// that is not copied, as in controller-runtime.
func TestPackedKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(pod("ns", "p", "n1"))
		for _, options := range [][]controllerruntime.Option{nil, {controllerruntime.Packed(packed.Like, &corev1.Pod{})}} {
			c := newCache(t, pods, cache.Options{}, options...)
			start(t, c)
			var got, uncopied corev1.Pod
			require.NoError(t, c.Get(t.Context(), keyOf("ns", "p"), &got))
			require.Equal(t, "Pod", got.Kind)
			require.NoError(t, c.Get(t.Context(), keyOf("ns", "p"), &uncopied, client.UnsafeDisableDeepCopy))
			require.Empty(t, uncopied.Kind)
			var all corev1.PodList
			require.NoError(t, c.List(t.Context(), &all))
			require.Equal(t, "Pod", all.Items[0].Kind)
			require.NoError(t, c.List(t.Context(), &all, client.UnsafeDisableDeepCopy))
			require.Empty(t, all.Items[0].Kind)
		}
	})
}

// opening is the form of a store at rest that counts the objects which it opens.
type opening struct{ opened *atomic.Int64 }

// resting reads an object at rest, which is its own entry.
type resting struct{ obj clientgo.Object }

func (r resting) Labels() map[string]string { return r.obj.GetLabels() }
func (r resting) Object() store.Object      { return r.obj }
func (resting) Field(string) string         { panic("there is no index of a field") }
func (resting) Done()                       {}

func (opening) Arrive(_ string, item, _ store.Entry) (store.Entry, store.Reading, error) {
	return item, nil, nil
}
func (opening) Read(entry store.Entry) store.Reading { return resting{entry.(clientgo.Object)} }
func (o opening) Open(entry store.Entry) clientgo.Object {
	o.opened.Add(1)
	return entry.(clientgo.Object).DeepCopyObject().(clientgo.Object)
}

// openingStore is a store of that form, as the option takes it.
type openingStore struct {
	*store.Indexer[clientgo.Object]
}

func (openingStore) LearnNothing() {}

// TestPackedLabelsAreReadAtRest: a list by labels opens the objects that it returns.
func TestPackedLabelsAreReadAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		for i := range 100 {
			pods.Create(pod(fmt.Sprint("ns", i%2), fmt.Sprint("p", i), "n1"))
		}
		var opened atomic.Int64
		like := func(clientgo.Object) func(...store.AnyIndex[clientgo.Object]) openingStore {
			return func(indexes ...store.AnyIndex[clientgo.Object]) openingStore {
				return openingStore{store.NewFormed(opening{&opened}, indexes...)}
			}
		}
		c := newCache(t, pods, cache.Options{}, controllerruntime.Packed(like))
		_, err := c.GetInformer(t.Context(), &corev1.Pod{})
		require.NoError(t, err)
		start(t, c)
		for labels, want := range map[string][]string{"p7": {"ns1/p7"}, "none": nil} {
			opened.Store(0)
			require.Equal(t, want, list(t, c, client.MatchingLabels{"app": labels}))
			require.Equal(t, len(want), int(opened.Load()))
		}
		opened.Store(0)
		require.Len(t, list(t, c, client.HasLabels{"app"}, client.InNamespace("ns1"), client.Limit(5)), 5)
		require.LessOrEqual(t, int(opened.Load()), 6)
	})
}

// TestPackedRefuses: a function that is nil, and a kind that the scheme does not know.
func TestPackedRefuses(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	_, err := controllerruntime.NewCacheWith(controllerruntime.Packed(packed.Like, client.Object(&unstructured.Unstructured{})))(
		pods.Server().Config(), cache.Options{Mapper: mapper()})
	require.ErrorContains(t, err, "controllerruntime: Packed: *unstructured.Unstructured")
}

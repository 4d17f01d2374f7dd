package controllerruntime_test

import (
	"fmt"
	"os"
	"os/exec"
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
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/store/packed"
)

// The pods of the cache are kept as packed bytes. Each read decodes a pod, which is the reader's.
func ExamplePacked() {
	newCache := controllerruntime.NewCacheWith(controllerruntime.Packed(packed.Like, &corev1.Pod{}))
	_ = newCache // ctrl.Options{NewCache: newCache}
}

// TestPackedCaches runs the tests of this package with all kinds packed. Left out are those of what
// differs: the memory of decoded objects, a transform before each read, and reads that share.
func TestPackedCaches(t *testing.T) {
	if os.Getenv(packAll) != "" {
		t.Skip("all kinds are packed")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), self, "-test.skip", "^(TestBill|TestSelectorsBeforeCopies|TestCopies|TestTransforms)$|Example|Fuzz")
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
				require.Equal(t, "Pod", got.Kind)
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

// TestPackedRefuses: a function that is nil, and a kind that the scheme does not know.
func TestPackedRefuses(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	_, err := controllerruntime.NewCacheWith(controllerruntime.Packed(packed.Like, client.Object(&unstructured.Unstructured{})))(
		pods.Server().Config(), cache.Options{Mapper: mapper()})
	require.ErrorContains(t, err, "controllerruntime: Packed: *unstructured.Unstructured")
}

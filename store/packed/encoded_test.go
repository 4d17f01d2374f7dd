package packed_test

import (
	"context"
	"fmt"
	"math/rand"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// follow keeps a packed store of bytes and an Indexer of objects on one collection. The result
// requires that they are equal, now and in the snapshots of the last time.
func follow[T store.Object](t *testing.T, at *packed.Store[T], bytes *listwatch.ListWatch[*store.Encoded], objects *listwatch.ListWatch[T]) (same func()) {
	plain := store.NewIndexer[T]()
	before, was := plain.Snapshot(), at.Snapshot()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); synctest.Wait() })
	ended := make(chan error, 2)
	go func() { ended <- reflector.New(bytes, at.Encoded()).Run(ctx) }()
	go func() { ended <- reflector.New(objects, plain).Run(ctx) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended); require.NoError(t, <-ended) })
	return func() {
		t.Helper()
		synctest.Wait()
		require.Equal(t, plain.Snapshot().ResourceVersion(), at.Snapshot().ResourceVersion())
		require.Equal(t, plain.Snapshot().Sorted(), at.Snapshot().Sorted())
		require.Equal(t, before.Sorted(), was.Sorted())
		changed := map[string]int{}
		for c := range store.Diff(before, plain.Snapshot()) {
			changed[c.Key]++
		}
		for c := range store.Diff(was, at.Snapshot()) {
			changed[c.Key]--
		}
		for key, n := range changed {
			require.Zero(t, n, "%s is a change of one only", key)
		}
		before, was = plain.Snapshot(), at.Snapshot()
	}
}

// TestBytesAreFollowed: a reflector of bytes keeps what a reflector of objects keeps, over changes,
// broken connections and relists, in each encoding and form. With the detector of mutations, the
// objects come decoded.
func TestBytesAreFollowed(t *testing.T) {
	change := func(t *testing.T, pods *listwatchtest.Collection[*corev1.Pod], same ...func()) {
		random := rand.New(rand.NewSource(3))
		all := func() {
			pods.Server().AwaitWatches(2 * len(same)) // they are back
			for _, s := range same {
				s()
			}
		}
		all()
		for round := range 8 {
			for range 40 {
				i := random.Intn(120)
				pod := somePod(i, 1)
				pod.ResourceVersion, pod.UID = "", ""
				pod.Spec.NodeName = "" // it is bound once
				now, err := pods.Origin().Get(pod.Namespace, pod.Name)
				switch {
				case err != nil:
					pods.Create(pod)
				case random.Intn(5) == 0:
					pods.Remove(pod)
				default:
					now = now.DeepCopy()
					now.Annotations = map[string]string{"changed": fmt.Sprint(random.Int63())}
					pods.Update(now)
				}
			}
			switch round % 4 {
			case 1:
				pods.Disconnect()
			case 2:
				pods.Disconnect()
				pods.Expire()
			}
			all()
		}
	}
	for _, detected := range []bool{false, true} {
		for _, json := range []bool{false, true} {
			t.Run(fmt.Sprintf("pods, JSON %t, detector %t", json, detected), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					pods := listwatchtest.New(t, listwatchtest.Pods())
					var options []listwatch.Option
					if !detected {
						options = append(options, listwatch.WithMutationDetector(nil))
					}
					if json {
						options = append(options, listwatch.WithJSON())
					}
					at := packed.New[corev1.Pod](indexes()...)
					change(t, pods, follow(t, at, pods.ListerWatcher(options...).Encoded(), pods.ListerWatcher()))
					for pod := range byImage.Objects(at.Snapshot(), "registry.example.com/team/service-3:v0") {
						require.Equal(t, "registry.example.com/team/service-3:v0", pod.Spec.Containers[0].Image)
					}
				})
			})
		}
	}
	t.Run("other forms", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pods := listwatchtest.New(t, listwatchtest.Pods())
			client, err := listwatch.NewRESTClient(pods.Server().Config(), schema.GroupVersion{Version: "v1"})
			require.NoError(t, err)
			trees := listwatch.FromClient[unstructured.Unstructured](client, "pods")
			heads := listwatch.FromClient[metav1.PartialObjectMetadata](client, "pods")
			headsJSON := listwatch.FromClient[metav1.PartialObjectMetadata](client, "pods", listwatch.WithJSON())
			lean := listwatch.FromClient[corev1.Pod](client, "pods", listwatch.DropManagedFields())
			change(t, pods,
				follow(t, packed.New[unstructured.Unstructured](), trees.Encoded(), trees),
				follow(t, packed.New[metav1.PartialObjectMetadata](), heads.Encoded(), heads),
				follow(t, packed.New[metav1.PartialObjectMetadata](), headsJSON.Encoded(), headsJSON),
				follow(t, packed.New[corev1.Pod](), lean.Encoded(), lean))
		})
	})
}

// TestSecretsOfAnyFormAreFleeting: the resource tells it.
func TestSecretsOfAnyFormAreFleeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secrets := listwatchtest.New(t, listwatchtest.Of[*corev1.Secret]())
		for i := range 50 {
			secrets.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("s-", i)}, Data: map[string][]byte{"k": fmt.Appendf(nil, "%9000d", i)}})
		}
		client, err := listwatch.NewRESTClient(secrets.Server().Config(), schema.GroupVersion{Version: "v1"})
		require.NoError(t, err)
		heads, lean := packed.New[metav1.PartialObjectMetadata](), packed.New[metav1.PartialObjectMetadata]()
		trees, typed := packed.New[unstructured.Unstructured](), packed.New[corev1.Secret]()
		source, dropping := listwatch.FromClient[metav1.PartialObjectMetadata](client, "secrets"), listwatch.FromClient[metav1.PartialObjectMetadata](client, "secrets", listwatch.DropManagedFields())
		tree := listwatch.FromClient[unstructured.Unstructured](client, "secrets")
		same := []func(){
			follow(t, heads, source.Encoded(), source), follow(t, lean, dropping.Encoded(), dropping),
			follow(t, trees, tree.Encoded(), tree), follow(t, typed, secrets.ListerWatcher(listwatch.WithMutationDetector(nil)).Encoded(), secrets.ListerWatcher()),
		}
		for i := range 50 {
			secrets.Server().AwaitWatches(2 * len(same))
			for _, s := range same {
				s()
			}
			secrets.Delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint("s-", i)}})
		}
		require.False(t, heads.Remembers())
		require.False(t, lean.Remembers())
		require.False(t, trees.Remembers())
		require.False(t, typed.Remembers())
	})
}

package informer_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/enqueue"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// An informer whose pods are at rest as bytes. A handler by key decodes none of them.
func ExampleWithStore() {
	server := newServer("web", "db") // a program has listwatch.FromClient[corev1.Pod](client, "pods")
	ctx, stop := context.WithCancel(context.Background())
	pods := informer.New(server.source(), informer.WithStore(packed.New[corev1.Pod]))
	h, err := pods.AddMetaHandler(func(e informer.Event[store.Object]) {
		if e.Key == "ns/web" { // the only one that is read whole
			fmt.Println(e.Type, pods.Open(e.New).Name)
		}
	})
	if err != nil {
		fmt.Println(err)
	}
	ended := make(chan error)
	go func() { ended <- pods.Run(ctx) }()
	if err := h.WaitSynced(ctx); err != nil {
		fmt.Println(err)
	}
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// added web
	// ended: <nil>
}

// assertSame asserts that two reads are of one state: of one object, unless each read decodes it.
func assertSame(t testing.TB, want, got *corev1.Pod) {
	t.Helper()
	if os.Getenv(packedPods) != "" {
		assert.Equal(t, want, got)
		return
	}
	assert.Same(t, want, got)
}

// TestPackedInformers runs the tests of this package, with the pods of each informer and of each
// union at rest. Left out are the tests of objects of other types.
func TestPackedInformers(t *testing.T) {
	if os.Getenv(packedPods) != "" {
		t.Skip("the pods are packed")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), self, "-test.skip", "TestCRD|TestNothingOfADeletedSecretStays|TestWaitForAnotherKind|Example|Fuzz")
	run.Env = append(os.Environ(), packedPods+"=1")
	out, err := run.CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestMetaHandlers: a handler of metadata is told the events of every other handler, and opens the
// objects that it asks for. It is the same without a store of bytes.
func TestMetaHandlers(t *testing.T) {
	for _, atRest := range []bool{false, true} {
		t.Run(fmt.Sprintf("at rest %t", atRest), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var options []informer.Option
				if atRest {
					options = append(options, informer.WithStore(packed.New[corev1.Pod]))
				}
				s := newServer("a")
				i := running(t, s, options...)
				var whole, meta recorder
				add(t, i, whole.handle)
				_, err := i.AddMetaHandler(func(e informer.Event[store.Object]) {
					meta.handle(podEvent{Key: e.Key, Type: e.Type, Initial: e.Initial, Missed: e.Missed, Final: e.Final,
						Old: opened(i, e.Old), New: opened(i, e.New)})
				})
				require.NoError(t, err)
				s.put("a")
				s.put("b")
				s.remove("b")
				s.disconnect(true)
				s.remove("a")
				s.put("a")
				want := whole.take()
				require.NotEmpty(t, want)
				require.Equal(t, want, meta.take())
				_, err = i.AddMetaHandler(nil)
				require.ErrorContains(t, err, "the function is nil")
			})
		})
	}
}

func opened(i *informer.Informer[*corev1.Pod], obj store.Object) *corev1.Pod {
	if obj == nil {
		return nil
	}
	return i.Open(obj)
}

// TestMetadataAtRest: the metadata of an entry is the object's, for functions of metadata.
func TestMetadataAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		controller := true
		pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "a", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"n": "1"}, Finalizers: []string{"example.com/f"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u", Controller: &controller}},
		}, Spec: corev1.PodSpec{NodeName: "node-1"}})
		i := informer.New(pods.ListerWatcher(), informer.WithStore(packed.New[corev1.Pod]))
		start(t, i)
		var told store.Object
		_, err := i.AddMetaHandler(func(e informer.Event[store.Object]) { told = e.New })
		require.NoError(t, err)
		synctest.Wait()
		whole := i.Open(told)
		require.Equal(t, "node-1", whole.Spec.NodeName)
		require.Equal(t, whole.Labels, told.GetLabels())
		require.Equal(t, whole.Annotations, told.GetAnnotations())
		require.Equal(t, whole.Finalizers, told.GetFinalizers())
		created := told.GetCreationTimestamp()
		require.True(t, whole.CreationTimestamp.Equal(&created))
		require.Equal(t, whole.Generation, told.GetGeneration())
		require.Equal(t, whole.ManagedFields, told.GetManagedFields())
		require.Equal(t, []string{"ns/web"}, enqueue.Owner[store.Object](schema.GroupKind{Group: "apps", Kind: "ReplicaSet"})(told))
		copied := told.DeepCopyObject().(*metav1.PartialObjectMetadata)
		require.Equal(t, whole.ObjectMeta, copied.ObjectMeta)
	})
}

// TestWithStoreRefuses: an informer or a union of other objects, and a function that is nil.
func TestWithStoreRefuses(t *testing.T) {
	secrets := informer.WithStore(packed.New[corev1.Secret])
	err := informer.New(newServer().source(), secrets).Run(t.Context())
	require.EqualError(t, err, "informer: WithStore: the store is of another type than the informer's *v1.Pod")
	err = informer.NewUnion[*corev1.Pod](secrets).Run(t.Context())
	require.EqualError(t, err, "informer: WithStore: the store is of another type than the informer's *v1.Pod")
	var none func(...store.AnyIndex[*corev1.Pod]) *packed.Store[*corev1.Pod]
	err = informer.New(newServer().source(), informer.WithStore(none)).Run(t.Context())
	require.ErrorContains(t, err, "informer: WithStore: the function is nil")
}

// TestIndexesAtRest: indexes may come while the informer runs, and find opened objects.
func TestIndexesAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		byName := store.NewIndex("name", func(p *corev1.Pod) []string { return []string{p.Name} })
		late := store.NewIndex("version", func(p *corev1.Pod) []string { return []string{p.ResourceVersion} })
		s := newServer("a", "b")
		i := running(t, s, informer.WithIndexes(byName), informer.WithStore(packed.New[corev1.Pod]))
		before := i.Snapshot()
		i.AddIndexes(late, byName, late)
		s.put("a")
		synctest.Wait()
		now := i.Snapshot()
		require.Equal(t, 1, byName.Len(now, "a"))
		require.Equal(t, 1, late.Len(now, "3"))
		require.Zero(t, late.Len(now, "1"))
		for pod := range late.Objects(now, "2") {
			require.Equal(t, "b", pod.Name)
		}
		require.Equal(t, 1, byName.Len(before, "a"))
		require.Panics(t, func() { late.Len(before, "1") })
	})
}

// TestLogsAtRestNameTheObjects: the log of a copy at rest has the type of its objects, of an
// informer and of a union's member, whether their source has bytes or objects.
func TestLogsAtRestNameTheObjects(t *testing.T) {
	for _, bytes := range []bool{true, false} {
		t.Run(fmt.Sprintf("bytes %t", bytes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := newPods(t)
				forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
				pods.Fail(listwatchtest.List, forbidden, listwatchtest.UntilLifted())
				source := pods.ListerWatcher(listwatch.WithoutWatchList(), listwatch.WithMutationDetector(nil))
				if !bytes {
					source = listwatch.Intercept(source, nil, nil)
				}
				var mu sync.Mutex
				var lines []string
				log := informer.WithReflector(reflector.WithLogger(funcr.New(func(_, line string) {
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, line)
				}, funcr.Options{})))
				atRest := informer.WithStore(packed.New[corev1.Pod])
				u := informer.NewUnion[*corev1.Pod](atRest, log)
				join(t, u, "all", source)
				start(t, u)
				start(t, informer.New(source, atRest, log))
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				require.Len(t, lines, 2)
				for _, line := range lines {
					require.Contains(t, line, `"type"="*v1.Pod" "resource"="pods"`)
				}
			})
		})
	}
}

package collection_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/internal/cachetest"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

var (
	start  = cachetest.Start
	pod    = cachetest.Pod
	onNode = cachetest.OnNode

	inNamespace = cachetest.InNamespace
)

// newPods is a collection of pods that no server serves.
func newPods(t testing.TB, options ...watchcache.Option) *collection.Collection[*corev1.Pod] {
	t.Helper()
	return newCollection(t, builtin.Pods(), watchcache.NewRevision(), options...)
}

func newCollection[T store.Object](
	t testing.TB, resource apiserver.Resource[T], revision *watchcache.Revision, options ...watchcache.Option,
) *collection.Collection[T] {
	t.Helper()
	c, err := collection.New(resource.Kind, resource.Rules, revision, options...)
	require.NoError(t, err)
	return c
}

func create(t testing.TB, pods *collection.Collection[*corev1.Pod], p *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := pods.Create(p)
	require.NoError(t, err)
	return created
}

// fromNow follows the writes to come.
func fromNow(t testing.TB, pods *collection.Collection[*corev1.Pod]) *cachetest.Follow {
	t.Helper()
	no := false
	return start(t, pods.Watch(t.Context(), metav1.ListOptions{
		SendInitialEvents: &no, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}))
}

func TestCreate(t *testing.T) {
	pods := newPods(t)
	given := pod("a")
	given.UID, given.Generation = "mine", 7
	a := create(t, pods, given)
	require.NotEqual(t, types.UID("mine"), a.UID)
	require.Equal(t, "2", a.ResourceVersion)
	require.EqualValues(t, 1, a.Generation)
	require.False(t, a.CreationTimestamp.IsZero())
	require.Empty(t, given.ResourceVersion, "the caller's object is his own")
	got, err := pods.Get("ns", "a")
	require.NoError(t, err)
	require.Same(t, a, got)

	_, err = pods.Create(pod("a"))
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	_, err = pods.Create(pod(""))
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = pods.Create(pod("b/c"))
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = pods.Create(pod("b", inNamespace("")))
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = pods.Create(a)
	require.Equal(t, metav1.StatusReasonUnknown, apierrors.ReasonForError(err), "a version of its own: %v", err)

	generated := pod("")
	generated.GenerateName = "web-"
	one, two := create(t, pods, generated), create(t, pods, generated)
	require.Regexp(t, `^web-.{5}$`, one.Name)
	require.NotEqual(t, one.Name, two.Name)
	require.Equal(t, "4", two.ResourceVersion, "refused writes take no version")
}

// TestAGeneratedNameThatIsTaken makes the generator say the same name again.
func TestAGeneratedNameThatIsTaken(t *testing.T) {
	pods := newPods(t)
	generated := pod("")
	generated.GenerateName = "web-"
	rand.Seed(1)
	one := create(t, pods, generated)
	rand.Seed(1)
	two, err := pods.Create(generated)
	require.NoError(t, err)
	require.Regexp(t, `^web-.{5}$`, two.Name)
	require.NotEqual(t, one.Name, two.Name)
}

func TestUpdate(t *testing.T) {
	pods := newPods(t)
	a := create(t, pods, pod("a"))
	events := fromNow(t, pods)

	same, err := pods.Update(a)
	require.NoError(t, err)
	require.Same(t, a, same, "nothing has changed")

	next := a.DeepCopy()
	metav1.SetMetaDataLabel(&next.ObjectMeta, "app", "web")
	next.Status.Phase = corev1.PodRunning
	next.CreationTimestamp = metav1.Time{}
	labelledPod, err := pods.Update(next)
	require.NoError(t, err)
	require.Equal(t, "web", labelledPod.Labels["app"])
	require.EqualValues(t, 1, labelledPod.Generation)
	require.Equal(t, a.UID, labelledPod.UID)
	require.Equal(t, a.CreationTimestamp, labelledPod.CreationTimestamp)
	require.Empty(t, labelledPod.Status.Phase, "the status is written apart")

	_, err = pods.Update(next)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	next.ResourceVersion = ""
	next.Spec.Hostname = "h"
	unconditional, err := pods.Update(next)
	require.NoError(t, err)
	require.EqualValues(t, 2, unconditional.Generation)

	next.UID = "another"
	_, err = pods.Update(next)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	_, err = pods.Update(pod("never"))
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	next.UID, next.Spec.Hostname = "", "ignored"
	running, err := pods.UpdateStatus(next)
	require.NoError(t, err)
	require.Equal(t, corev1.PodRunning, running.Status.Phase)
	require.Equal(t, "h", running.Spec.Hostname)
	require.EqualValues(t, 2, running.Generation)
	events.Require("MODIFIED a@3", "MODIFIED a@4", "MODIFIED a@5")
}

func TestGracefulDeletion(t *testing.T) {
	pods := newPods(t)
	create(t, pods, pod("a", onNode("n1")))
	events := fromNow(t, pods)
	marked, err := pods.Delete("ns", "a", metav1.DeleteOptions{})
	require.NoError(t, err)
	require.NotNil(t, marked.DeletionTimestamp)
	require.EqualValues(t, 30, *marked.DeletionGracePeriodSeconds)
	require.EqualValues(t, 2, marked.Generation)
	again, err := pods.Delete("ns", "a", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](60)})
	require.NoError(t, err)
	require.Same(t, marked, again, "a grace period is only shortened")
	_, err = pods.Delete("ns", "a", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](5)})
	require.NoError(t, err)
	_, err = pods.Delete("ns", "a", *metav1.NewDeleteOptions(0))
	require.NoError(t, err)
	events.Require("MODIFIED a@3", "MODIFIED a@4", "MODIFIED a@5", "DELETED a@6")
	_, err = pods.Get("ns", "a")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestDeletionOfWhatRunsNowhereIsImmediate(t *testing.T) {
	pods := newPods(t)
	create(t, pods, pod("a"))
	finished := pod("b", onNode("n1"))
	finished.Status.Phase = corev1.PodFailed
	create(t, pods, finished)
	events := fromNow(t, pods)
	for _, name := range []string{"a", "b"} {
		_, err := pods.Delete("ns", name, metav1.DeleteOptions{})
		require.NoError(t, err)
	}
	events.Require("MODIFIED a@4", "DELETED a@5", "MODIFIED b@6", "DELETED b@7")
}

func TestRemoveTakesEverythingAway(t *testing.T) {
	pods := newPods(t)
	held := pod("a", onNode("n1"))
	held.Finalizers = []string{"example.com/hold"}
	create(t, pods, held)
	events := fromNow(t, pods)
	gone, err := pods.Remove("ns", "a")
	require.NoError(t, err)
	require.Equal(t, "3", gone.ResourceVersion)
	events.Require("DELETED a@3")
	_, err = pods.Remove("ns", "a")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestFinalizersHoldAnObject(t *testing.T) {
	configMaps := newCollection(t, builtin.Of[*corev1.ConfigMap](), watchcache.NewRevision())
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Finalizers: []string{"x/y"}}}
	created, err := configMaps.Create(held)
	require.NoError(t, err)
	require.Zero(t, created.Generation, "a kind without a spec has no generation")
	marked, err := configMaps.Delete("ns", "a", metav1.DeleteOptions{})
	require.NoError(t, err)
	require.NotNil(t, marked.DeletionTimestamp)
	again, err := configMaps.Delete("ns", "a", *metav1.NewDeleteOptions(0))
	require.NoError(t, err)
	require.Same(t, marked, again)

	next := marked.DeepCopy()
	next.Data = map[string]string{"k": "v"}
	next, err = configMaps.Update(next)
	require.NoError(t, err)
	next = next.DeepCopy()
	next.Finalizers = nil
	_, err = configMaps.Update(next)
	require.NoError(t, err)
	_, err = configMaps.Get("ns", "a")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestDeletePreconditions(t *testing.T) {
	pods := newPods(t)
	a := create(t, pods, pod("a"))
	refuse := func(p metav1.Preconditions) {
		t.Helper()
		_, err := pods.Delete("ns", "a", metav1.DeleteOptions{Preconditions: &p})
		require.True(t, apierrors.IsConflict(err), "%v", err)
	}
	refuse(metav1.Preconditions{UID: ptr.To[types.UID]("another")})
	refuse(metav1.Preconditions{ResourceVersion: ptr.To("1")})
	_, err := pods.Delete("ns", "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: &a.UID, ResourceVersion: &a.ResourceVersion,
	}})
	require.NoError(t, err)
	_, err = pods.Delete("ns", "a", metav1.DeleteOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestVersionsAreCountedOverAllCollections(t *testing.T) {
	revision := watchcache.NewRevision()
	pods := newCollection(t, builtin.Pods(), revision)
	all := newCollection(t, builtin.Of[*corev1.Node](), revision)
	require.Equal(t, "2", create(t, pods, pod("a")).ResourceVersion)
	node, err := all.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	require.NoError(t, err)
	require.Equal(t, "3", node.ResourceVersion)
	require.Equal(t, "4", create(t, pods, pod("b")).ResourceVersion)
	_, err = all.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2", Namespace: "ns"}})
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	got, err := all.Get("ignored", "n1")
	require.NoError(t, err)
	require.Same(t, node, got)
}

func TestDocumentsAreObjectsToo(t *testing.T) {
	widgets := newCollection(t, apiserver.Resource[*unstructured.Unstructured]{Kind: watchcache.Kind[*unstructured.Unstructured]{
		Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget",
	}}, watchcache.NewRevision())
	given := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "a"},
		"spec":     map[string]any{"size": int64(1)},
	}}
	a, err := widgets.Create(given)
	require.NoError(t, err)
	require.Equal(t, "example.com/v1", a.GetAPIVersion())
	require.EqualValues(t, 1, a.GetGeneration())
	next := a.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(next.Object, int64(2), "spec", "size"))
	require.NoError(t, unstructured.SetNestedField(next.Object, "ready", "status", "phase"))
	updated, err := widgets.Update(next)
	require.NoError(t, err)
	require.EqualValues(t, 2, updated.GetGeneration())
	require.NotContains(t, updated.Object, "status")
	next.SetResourceVersion("")
	withStatus, err := widgets.UpdateStatus(next)
	require.NoError(t, err)
	require.Contains(t, withStatus.Object, "status")
}

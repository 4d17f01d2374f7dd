package finalizer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/controller/finalizer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

const name = "example.com/mine"

type settings = *corev1.ConfigMap

// widget is a custom resource whose type has what a generated one has.
type widget struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int `json:"size"`
	} `json:"spec"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	next := *w
	next.ObjectMeta = *w.ObjectMeta.DeepCopy()
	return &next
}

// TestPatchOfARESTClient: a type without a scheme, and the server's conflict as an error.
func TestPatchOfARESTClient(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	made := listwatchtest.New(t, listwatchtest.Custom[*widget](kind, "widgets"))
	client, err := listwatch.NewRESTClient(made.Server().Config(), kind.GroupVersion())
	require.NoError(t, err)
	first := made.Create(&widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
	patch := finalizer.Patch[widget](client, "widgets", "ns")
	keep := func(w *widget) (bool, error) {
		return finalizer.Keep(t.Context(), w, name, patch, func(context.Context, *widget) error { return nil })
	}
	_, err = keep(first)
	require.NoError(t, err)
	now, err := made.Origin().Get("ns", "a")
	require.NoError(t, err)
	require.Equal(t, []string{name}, now.Finalizers)
	live, err := keep(now)
	require.NoError(t, err)
	require.True(t, live)
	_, err = keep(first)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, `Operation cannot be fulfilled on widgets.example.com "a"`)
	same, err := patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"size":3}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	require.Equal(t, 3, same.Spec.Size)
	now, err = made.Origin().Get("ns", "a")
	require.NoError(t, err)
	require.Zero(t, now.Spec.Size, "the options reach the server")
}

// TestKeep follows an object from its creation to its end, beside a finalizer of another program.
func TestKeep(t *testing.T) {
	made := listwatchtest.New(t, listwatchtest.Of[settings]())
	client, err := kubernetes.NewForConfig(made.Server().Config())
	require.NoError(t, err)
	patch := client.CoreV1().ConfigMaps("ns").Patch
	cleaned := 0
	refused := errors.New("not empty")
	var result error
	cleanup := func(context.Context, settings) error { cleaned++; return result }
	keep := func(obj settings) (bool, error) { return finalizer.Keep(t.Context(), obj, name, patch, cleanup) }
	now := func() settings {
		obj, err := made.Origin().Get("ns", "a")
		require.NoError(t, err)
		return obj
	}

	first := made.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
	live, err := keep(first)
	require.NoError(t, err)
	require.False(t, live, "the change brings the next call")
	require.Equal(t, []string{name}, now().Finalizers)
	live, err = keep(now())
	require.NoError(t, err)
	require.True(t, live)

	// Another program adds its own, and a copy that is behind does not take it away.
	old := now()
	other := old.DeepCopy()
	other.Finalizers = append(other.Finalizers, "example.com/other")
	made.Update(other)
	deleted := old.DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	_, err = keep(deleted)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "finalizer: patch the finalizers of ns/a: ")
	_, err = keep(first)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.Equal(t, []string{name, "example.com/other"}, now().Finalizers)

	made.Delete(now())
	result, cleaned = refused, 0
	live, err = keep(now())
	require.ErrorIs(t, err, refused)
	require.False(t, live)
	require.Equal(t, []string{name, "example.com/other"}, now().Finalizers, "the cleanup has failed")
	result = nil
	last := now()
	live, err = keep(last)
	require.NoError(t, err)
	require.False(t, live)
	require.Equal(t, 2, cleaned)
	require.Equal(t, []string{"example.com/other"}, now().Finalizers)
	live, err = keep(now())
	require.NoError(t, err)
	require.False(t, live, "the rest is not ours")
	require.Equal(t, 2, cleaned)

	made.Remove(now())
	_, err = keep(last)
	require.NoError(t, err, "it is gone")
	made.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
	_, err = keep(first)
	require.True(t, apierrors.IsConflict(err), "another object of that name: %v", err)
	require.Empty(t, now().Finalizers)
	_, err = finalizer.Keep(t.Context(), first, "mine", patch, cleanup)
	require.ErrorContains(t, err, "a name with a domain such as example.com/name")
}

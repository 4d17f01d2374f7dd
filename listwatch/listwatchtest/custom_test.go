package listwatchtest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// A kind that is not built in is a custom resource, whatever its group is called: kube-apiserver
// 1.36.3 with a CustomResourceDefinition of each group answers the same.
func TestACustomResourceIsOneInEveryGroup(t *testing.T) {
	for _, kind := range []schema.GroupVersionKind{
		{Group: "example.com", Version: "v1", Kind: "Widget"},
		{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "GatewayClass"},
		{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"},
		{Group: "plain", Version: "v1", Kind: "Lease"}, // a built-in kind has this name
	} {
		t.Run(kind.Group, func(t *testing.T) {
			plural := strings.ToLower(kind.Kind) + "s"
			served := listwatchtest.New(t, listwatchtest.Custom[*unstructured.Unstructured](kind, plural))
			client, err := dynamic.NewForConfig(served.Server().Listen())
			require.NoError(t, err)
			objects := client.Resource(kind.GroupVersion().WithResource(plural)).Namespace("ns")

			obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}, "data": "a"}}
			obj.SetGroupVersionKind(kind)
			obj.SetName("one")
			created, err := objects.Create(t.Context(), obj, metav1.CreateOptions{})
			require.NoError(t, err)
			require.EqualValues(t, 1, created.GetGeneration())

			blind := created.DeepCopy()
			blind.SetResourceVersion("")
			_, err = objects.Update(t.Context(), blind, metav1.UpdateOptions{})
			require.True(t, apierrors.IsInvalid(err), "%v", err)
			require.ErrorContains(t, err, "metadata.resourceVersion: Invalid value: 0: must be specified for an update")

			changed := created.DeepCopy()
			changed.Object["data"] = "b" // outside spec and status
			changed, err = objects.Update(t.Context(), changed, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.EqualValues(t, 2, changed.GetGeneration())

			changed.SetLabels(map[string]string{"a": "b"})
			changed, err = objects.Update(t.Context(), changed, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.EqualValues(t, 2, changed.GetGeneration(), "metadata does not count")

			changed.Object["status"] = map[string]any{"ready": true}
			changed, err = objects.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{})
			require.NoError(t, err)
			require.EqualValues(t, 2, changed.GetGeneration(), "the status does not count")
		})
	}
}

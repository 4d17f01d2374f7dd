package crd_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/crd"
)

// newControlPlane is what a test of a controller asks of envtest, without a binary.
func newControlPlane(t testing.TB) *listwatchtest.Server {
	t.Helper()
	server := listwatchtest.NewServer(t)
	builtin.Serve(server.Origin())
	require.NoError(t, crd.Serve(server.Origin(), "testdata"))
	return server
}

// TestInPlaceOfEnvtest: built-in and custom resources by unmodified clients that find them by
// discovery, as those of controllers do.
func TestInPlaceOfEnvtest(t *testing.T) {
	config := newControlPlane(t).Config()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{})
	require.NoError(t, err)

	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(config))
	require.NoError(t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	definitions, err := crd.Load("testdata")
	require.NoError(t, err)
	d := definitions[0].Spec
	kind, err := mapper.KindFor(schema.GroupVersionResource{Group: d.Group, Resource: d.Names.Plural})
	require.NoError(t, err)
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	require.NoError(t, err)
	documents := dynamic.NewForConfigOrDie(config).Resource(mapping.Resource).Namespace(metav1.NamespaceDefault)
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": "no object"}}
	obj.SetGroupVersionKind(kind)
	obj.SetName("a")
	_, err = documents.Create(t.Context(), obj, metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "the schema of the file is the server's: %v", err)
}

func TestServeTwice(t *testing.T) {
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	defer server.Close()
	require.NoError(t, crd.Serve(server, "testdata"))
	require.ErrorContains(t, crd.Serve(server, "testdata"), "is served already")
	require.Error(t, crd.Serve(server, "testdata/none"))
}

// BenchmarkStart is what a test waits for a control plane with all built-in kinds and one
// definition.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		newControlPlane(b)
	}
}

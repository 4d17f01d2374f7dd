package fidelity_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/crd"
)

const widgetGroup = "e2e.tributary.dev"

// definitions are the custom resources of the table.
func definitions(t testing.TB) (all []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, name := range []string{"widgets", "gadgets"} {
		found, err := crd.Load(filepath.Join("testdata", name+".yaml"))
		require.NoError(t, err)
		all = append(all, found...)
	}
	return all
}

// startReal is the API server, with the custom resources.
func startReal(t testing.TB) *side {
	t.Helper()
	config := cluster.Start(t).Server.Config(cluster.Admin)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	define(t, config)
	return &side{
		name: "the API server", url: config.Host, token: cluster.Admin, client: client, authority: config.CAData,
	}
}

// define creates the definitions of the table, and returns when they are served.
func define(t testing.TB, config *rest.Config) {
	t.Helper()
	dynamics, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	crds := dynamics.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	for _, definition := range definitions(t) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
		require.NoError(t, err)
		_, err = crds.Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
		require.NoError(t, err)
		resource := schema.GroupVersionResource{Group: widgetGroup, Version: "v1", Resource: definition.Spec.Names.Plural}
		require.Eventually(t, func() bool {
			_, err := dynamics.Resource(resource).List(t.Context(), metav1.ListOptions{})
			return err == nil
		}, 30*time.Second, 20*time.Millisecond)
	}
}

// startProgram is `tributary serve` on an etcd.
func startProgram(t testing.TB) *side {
	t.Helper()
	binary, err := cluster.BuildTributary(t.TempDir())
	require.NoError(t, err)
	config := cluster.StartTributary(t, binary).Server.Config(cluster.Admin)
	define(t, config)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	return &side{name: theServe, url: config.Host, token: cluster.Admin, client: client, authority: config.CAData}
}

// startOurs is a server with the resources of the table.
func startOurs(t testing.TB) *side {
	t.Helper()
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	builtin.Serve(s)
	for _, definition := range definitions(t) {
		r, err := crd.Resource(definition)
		require.NoError(t, err)
		apiserver.Serve(s, r)
	}
	listener := httptest.NewServer(s)
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		s.Close()
		listener.Close()
	})
	return &side{name: theFake, url: listener.URL, client: client}
}

package mapper_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/listwatch/mapper"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

func widgets() listwatchtest.Resource[*unstructured.Unstructured] {
	r := listwatchtest.Custom[*unstructured.Unstructured](
		schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"}, "widgets")
	r.View.ShortNames = []string{"wd"}
	return r
}

func Example() {
	server, err := apiserver.NewServer()
	check(err)
	defer server.Close()
	_, err = apiserver.Serve(server, builtin.Pods()).Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}})
	check(err)
	listener := httptest.NewServer(server)
	defer listener.Close()

	m, err := mapper.New(&rest.Config{Host: listener.URL})
	check(err)
	source, err := mapper.ListWatch[unstructured.Unstructured](m, "po")
	check(err)
	pods := informer.New(source)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- pods.Run(ctx) }()
	check(pods.WaitSynced(ctx))
	for key, pod := range pods.Snapshot().All() {
		fmt.Println(pod.GetKind(), key)
	}
	stop()
	fmt.Println("ended:", <-ended)
	// Output:
	// Pod ns/web
	// ended: <nil>
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func TestNames(t *testing.T) {
	server := listwatchtest.NewServer(t)
	listwatchtest.Serve(server, listwatchtest.Pods())
	listwatchtest.Serve(server, widgets())
	m, err := mapper.New(server.Config())
	require.NoError(t, err)
	for name, want := range map[string]string{
		"pods": "/v1, Resource=pods", "pod": "/v1, Resource=pods", "po": "/v1, Resource=pods", "Pod": "/v1, Resource=pods",
		"widgets": "example.com/v2, Resource=widgets", "wd": "example.com/v2, Resource=widgets",
		"Widget": "example.com/v2, Resource=widgets", "widgets.example.com": "example.com/v2, Resource=widgets",
		"Widget.v2.example.com": "example.com/v2, Resource=widgets", "wd.example.com": "example.com/v2, Resource=widgets",
	} {
		resource, err := m.Resource(name)
		require.NoError(t, err, name)
		require.Equal(t, want, resource.String(), name)
	}
	for _, name := range []string{"gadgets", "pods.example.com", "widgets.v1.example.com"} {
		_, err := m.Resource(name)
		require.True(t, meta.IsNoMatchError(err), "%s: %v", name, err)
		require.ErrorContains(t, err, fmt.Sprintf("mapper: %q: ", name))
	}
	_, err = m.Resource("")
	require.ErrorContains(t, err, "a resource must be present")
}

// TestNewResource: a resource that came after the first question is found, as after a new CRD.
func TestNewResource(t *testing.T) {
	server := listwatchtest.NewServer(t)
	listwatchtest.Serve(server, listwatchtest.Of[*corev1.Node]())
	m, err := mapper.New(server.Config())
	require.NoError(t, err)
	_, err = m.Resource("widgets")
	require.True(t, meta.IsNoMatchError(err))
	listwatchtest.Serve(server, widgets())
	source, err := mapper.ListWatch[metav1.PartialObjectMetadata](m, "widgets", listwatch.InNamespace("ns"))
	require.NoError(t, err)
	list := source.List(t.Context(), metav1.ListOptions{})
	for _, err := range list.Items {
		require.NoError(t, err)
	}
	_, err = mapper.ListWatch[corev1.Node](m, "nodes")
	require.NoError(t, err)
	_, err = mapper.ListWatch[corev1.Node](m, "nod", listwatch.InNamespace("ns"))
	require.True(t, meta.IsNoMatchError(err), "no short name of nodes")
	_, err = mapper.ListWatch[corev1.Node](m, "node", listwatch.InNamespace("ns"))
	require.ErrorContains(t, err, `nodes have no namespace: remove InNamespace("ns")`)
}

package correctness

import (
	"testing"

	"github.com/stretchr/testify/require"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// connect is a client of a server, which gets the namespaces that the tests write to. Whatever the
// resource is, its objects are read as if they were pods.
func connect(t *testing.T, s server, resource string, protobuf bool) *rest.RESTClient {
	t.Helper()
	kind := map[string]string{"pods": "Pod", "serviceaccounts": "ServiceAccount"}[resource]
	v1, scheme := corev1.SchemeGroupVersion, runtime.NewScheme()
	scheme.AddKnownTypeWithName(v1.WithKind(kind), &corev1.Pod{})
	scheme.AddKnownTypeWithName(v1.WithKind(kind+"List"), &corev1.PodList{})
	scheme.AddKnownTypes(v1, &corev1.Namespace{})
	metav1.AddToGroupVersion(scheme, v1)
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	config := &rest.Config{
		Host: s.url, APIPath: "/api", QPS: -1, WarningHandler: rest.NoWarnings{},
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &schema.GroupVersion{Version: "v1"},
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
	}
	if protobuf {
		config.ContentType = runtime.ContentTypeProtobuf
	}
	client, err := rest.RESTClientFor(config)
	require.NoError(t, err)
	for _, name := range []string{"ns1", "ns10", "ns-1", "ns-2", "ns-11"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.NoError(t, client.Post().Resource("namespaces").Body(namespace).Do(t.Context()).Error())
	}
	return client
}

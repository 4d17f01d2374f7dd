package apiserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// TestNamespacesMustExistOnceTheyAreServed: those that a real server makes itself are there.
func TestNamespacesMustExistOnceTheyAreServed(t *testing.T) {
	r := newRig(t)
	create := func(namespace string) int {
		return r.do(t, "POST", "/api/v1/namespaces/"+namespace+"/configmaps", `{"metadata":{"generateName":"a-"}}`).code
	}
	require.Equal(t, http.StatusCreated, create("any"))
	namespaces := apiserver.Serve(r.Server, builtin.Of[*corev1.Namespace]())
	require.Equal(t, http.StatusNotFound, create("any"))
	require.Equal(t, http.StatusCreated, create("default"))
	_, err := namespaces.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "any", Finalizers: []string{"e.dev/f"}}})
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, create("any"))
	_, err = namespaces.Delete("", "any", metav1.DeleteOptions{})
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, create("any"))
}

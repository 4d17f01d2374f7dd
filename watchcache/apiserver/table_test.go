package apiserver_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver"
)

// TestColumnsAreDescribed: what a resource says of its columns and of its name reaches clients.
func TestColumnsAreDescribed(t *testing.T) {
	r := newRig(t)
	secrets := watchcache.Core[*corev1.Secret]("secrets", "Secret")
	secrets.Singular = "mystery"
	secrets.Columns = []watchcache.Column[*corev1.Secret]{
		{Name: "Keys", Type: "integer", Format: "int64", Description: "how many", Wide: true, Value: func(s *corev1.Secret) any { return int64(len(s.Data)) }},
		{Name: "Kind", Value: func(*corev1.Secret) any { return nil }},
	}
	collection := apiserver.Serve(r.Server, secrets)
	_, err := collection.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
	require.NoError(t, err)

	var table metav1.Table
	require.NoError(t, json.Unmarshal(r.get(t, "/api/v1/secrets", "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1").body, &table))
	require.Len(t, table.ColumnDefinitions, 3)
	name := table.ColumnDefinitions[0]
	require.Equal(t, "name", name.Format)
	require.NotEmpty(t, name.Description)
	require.Equal(t, []metav1.TableColumnDefinition{
		{Name: "Keys", Type: "integer", Format: "int64", Description: "how many", Priority: 1},
		{Name: "Kind", Type: "string"},
	}, table.ColumnDefinitions[1:])
	require.Equal(t, []any{"a", float64(0), nil}, table.Rows[0].Cells)

	var list metav1.APIResourceList
	require.NoError(t, json.Unmarshal(r.get(t, "/api/v1").body, &list))
	require.Equal(t, "mystery", list.APIResources[len(list.APIResources)-1].SingularName)
}

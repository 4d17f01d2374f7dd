package apiserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
)

// TestColumnsAreDescribed: what a resource says of its columns and of its name reaches clients.
func TestColumnsAreDescribed(t *testing.T) {
	r := newRig(t)
	secrets := builtin.Of[*corev1.Secret]()
	secrets.View.Singular = "mystery"
	secrets.View.Columns = []apiserver.Column[*corev1.Secret]{
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

// TestRowsSayHowOldTheirObjectsAreNow: what a row says changes with the time, so that no list or
// watch takes it over from an earlier one of the same state.
func TestRowsSayHowOldTheirObjectsAreNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := apiserver.NewServer()
		require.NoError(t, err)
		defer s.Close()
		pods := apiserver.Serve(s, builtin.Pods())
		began := time.Now()
		_, err = pods.Create(pod("a"))
		require.NoError(t, err)
		age := func(path string, of func(body []byte) []byte) any {
			answer := httptest.NewRecorder()
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			request.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
			s.ServeHTTP(answer, request)
			require.Equal(t, http.StatusOK, answer.Code)
			var table metav1.Table
			require.NoError(t, json.Unmarshal(of(answer.Body.Bytes()), &table))
			return table.Rows[0].Cells[4]
		}
		list := func(body []byte) []byte { return body }
		first := func(body []byte) []byte {
			var event metav1.WatchEvent
			require.NoError(t, json.NewDecoder(bytes.NewReader(body)).Decode(&event))
			return event.Object.Raw
		}
		page, err := pods.Cache().Page(t.Context(), watchcache.Request{})
		require.NoError(t, err)
		defer runtime.KeepAlive(page) // and with it, what its readers share
		for range 3 {
			for path, of := range map[string]func([]byte) []byte{
				"": list, "?watch=1&resourceVersion=0&timeoutSeconds=1": first, "?watch=1&resourceVersion=1&timeoutSeconds=1": first,
			} {
				time.Sleep(3 * time.Second)
				want := fmt.Sprintf("%.0fs", time.Since(began).Seconds())
				require.Equal(t, want, age("/api/v1/pods"+path, of), path)
			}
		}
	})
}

package listwatchtest_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// interceptRig is a collection and a client for it.
func interceptRig(t *testing.T) (*listwatchtest.Collection[*corev1.ConfigMap], typedcorev1.ConfigMapInterface) {
	maps := listwatchtest.New(t, listwatchtest.Of[*corev1.ConfigMap]())
	config := maps.Server().Config()
	config.ContentType = "application/json"
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return maps, client.CoreV1().ConfigMaps("ns")
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

// TestALostAnswer: the write is made, and the client does not learn of it.
func TestALostAnswer(t *testing.T) {
	maps, client := interceptRig(t)
	lost := maps.Intercept(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		would := httptest.NewRecorder()
		server.ServeHTTP(would, r)
		require.Equal(t, http.StatusCreated, would.Code)
		w.WriteHeader(http.StatusBadGateway)
	}, listwatchtest.On(listwatchtest.Create))
	_, err := client.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	require.Error(t, err)
	require.Equal(t, 1, lost.Struck())
	_, err = client.Create(t.Context(), configMap("a"), metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	require.Equal(t, 1, lost.Struck(), "once")
}

// TestOneRequestBehindAnother: the first update waits until the second one is done.
func TestOneRequestBehindAnother(t *testing.T) {
	maps, client := interceptRig(t)
	created := maps.Create(configMap("a"))
	second := make(chan struct{})
	held := maps.Intercept(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		<-second
		server.ServeHTTP(w, r)
	}, listwatchtest.On(listwatchtest.Update))
	var waiting sync.WaitGroup
	var first error
	waiting.Go(func() {
		_, first = client.Update(t.Context(), created, metav1.UpdateOptions{})
	})
	held.Wait()
	next := created.DeepCopy()
	next.Data = map[string]string{"by": "the second"}
	_, err := client.Update(t.Context(), next, metav1.UpdateOptions{})
	require.NoError(t, err)
	close(second)
	waiting.Wait()
	require.True(t, apierrors.IsConflict(first), "%v", first)
}

// TestAnAdmissionWebhook changes what is created, until it is lifted.
func TestAnAdmissionWebhook(t *testing.T) {
	maps, client := interceptRig(t)
	webhook := maps.Intercept(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		body = bytes.Replace(body, []byte(`"data":{"k":"v"}`), []byte(`"data":{"k":"mutated"}`), 1)
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.Header().Add("Warning", `299 - "mutated"`)
		server.ServeHTTP(w, r)
	}, listwatchtest.On(listwatchtest.Create), listwatchtest.UntilLifted())
	for _, row := range []struct{ name, want string }{{"a", "mutated"}, {"b", "mutated"}, {"c", "v"}} {
		if row.name == "c" {
			webhook.Lift()
		}
		given := configMap(row.name)
		given.Data = map[string]string{"k": "v"}
		created, err := client.Create(t.Context(), given, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, row.want, created.Data["k"], row.name)
	}
	require.Equal(t, 2, webhook.Struck())
}

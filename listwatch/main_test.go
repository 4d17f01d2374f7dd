package listwatch_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/listwatch"
)

func TestMain(m *testing.M) {
	sharing.FirstBytes = 0         // so that few objects are enough
	klog.SetLogger(logr.Discard()) // a test that reads logs sets its own logger
	goleak.VerifyTestMain(m)
}

// serve returns a client config for a new server, without a rate limit.
func serve(t testing.TB, handler http.HandlerFunc) *rest.Config {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, QPS: -1}
}

// answer gives one answer to all requests.
func answer(code int, contentType string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = w.Write(body)
	}
}

// answerBoth gives one answer to lists, and another to watches.
func answerBoth(contentType string, list, watch []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := list
		if r.URL.Query().Get("watch") == "true" {
			body = watch
		}
		answer(http.StatusOK, contentType, body)(w, r)
	}
}

func clientset(t testing.TB, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	cs, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return cs
}

func restClient(t testing.TB, config *rest.Config, gv schema.GroupVersion) rest.Interface {
	t.Helper()
	client, err := listwatch.NewRESTClient(config, gv)
	require.NoError(t, err)
	return client
}

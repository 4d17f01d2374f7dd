package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/e2e/cluster"
)

var projects = schema.GroupVersionResource{Group: "platform.example", Version: "v1", Resource: "projects"}

// aggregate has kube-apiserver's aggregator ask a server of this process for projects: it shows
// each user those with the user's name, and the relay all. It has watch lists, so that a relay
// could copy them.
func (w *world) aggregate(t *testing.T, owners ...string) {
	t.Helper()
	answer := func(answer http.ResponseWriter, body any) {
		answer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(answer).Encode(body)
	}
	version := projects.GroupVersion().String()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/"+version, func(out http.ResponseWriter, _ *http.Request) {
		answer(out, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version,
			APIResources: []metav1.APIResource{{Name: "projects", SingularName: "project", Kind: "Project", Verbs: []string{"get", "list", "watch"}}},
		})
	})
	mux.HandleFunc("GET /apis/"+version+"/projects", func(out http.ResponseWriter, r *http.Request) {
		items := []any{}
		for i, owner := range owners {
			if user := r.Header.Get("X-Remote-User"); user == owner || user == cluster.AgentUser {
				items = append(items, map[string]any{
					"apiVersion": version, "kind": "Project",
					"metadata": map[string]any{"name": fmt.Sprint("project-", i), "uid": strconv.Itoa(i), "resourceVersion": "1"},
				})
			}
		}
		if watches := r.URL.Query().Get("watch"); watches == "1" || watches == "true" {
			events := []any{}
			if r.URL.Query().Get("sendInitialEvents") == "true" {
				for _, item := range items {
					events = append(events, map[string]any{"type": "ADDED", "object": item})
				}
				events = append(events, map[string]any{"type": "BOOKMARK", "object": map[string]any{
					"apiVersion": version, "kind": "Project", "metadata": map[string]any{
						"resourceVersion": "1", "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"}},
				}})
			}
			for _, event := range events {
				answer(out, event)
			}
			_ = http.NewResponseController(out).Flush()
			<-r.Context().Done()
			return
		}
		answer(out, map[string]any{"apiVersion": version, "kind": "ProjectList", "metadata": map[string]any{"resourceVersion": "1"}, "items": items})
	})
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	port, err := strconv.Atoi(address.Port())
	require.NoError(t, err)
	_, err = w.client.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "projects"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = w.dynamics.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}).
		Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
			"metadata": map[string]any{"name": projects.Version + "." + projects.Group},
			"spec": map[string]any{
				"group": projects.Group, "version": projects.Version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
				"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "projects", "port": int64(port)},
			},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// TestRelayOfAnAggregatedAPI: an API that shows each user a part of its objects is asked for each
// user through a relay, too, and is copied for all only if the operator names it.
func TestRelayOfAnAggregatedAPI(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	w := newWorld(t, c)
	c.AllowRelay()
	of := map[string]string{} // by the account's name
	for _, name := range []string{"alice", "nobody-special"} {
		w.grantAccount(t, name)
		of[name] = c.AccountToken(w.account(t, name), time.Now().Add(time.Hour))
	}
	w.aggregate(t, "system:serviceaccount:default:alice", "other", "another")
	seen := func(config *rest.Config) (n int, err error) {
		client, err := dynamic.NewForConfig(config)
		require.NoError(t, err)
		list, err := client.Resource(projects).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return 0, err
		}
		return len(list.Items), nil
	}
	require.Eventually(t, func() bool {
		n, err := seen(c.Server.Config(of["alice"]))
		return err == nil && n == 1
	}, time.Minute, 100*time.Millisecond, "the aggregator does not know the server")
	r := w.relayOfServer(impatient())
	for range 5 { // as soon as it could have a copy
		for name, want := range map[string]int{"alice": 1, "nobody-special": 0} {
			direct, err := seen(c.Server.Config(of[name]))
			require.NoError(t, err)
			through, err := seen(r.config(of[name]))
			require.NoError(t, err)
			require.Equal(t, []int{want, want}, []int{direct, through}, name)
		}
		pass(time.Second)
	}
}

// TestRelayBehindAFrontThatCleansPaths: a proxy between a relay and its API server cleans paths. A
// client without rights asks for documents that lead to Secrets, and hides the user that it is
// asked to be. No answer is the relay's own.
func TestRelayBehindAFrontThatCleansPaths(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	w := newWorld(t, c)
	c.AllowRelay()
	_, err := w.client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, StringData: map[string]string{"value": "very-secret"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	upstream, err := url.Parse(c.Server.Config(cluster.Agent).Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(c.Server.Config(cluster.Agent)))
	require.NoError(t, err)
	front := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(upstream)
		r.Out.URL.Path, r.Out.URL.RawPath = path.Clean(r.In.URL.Path), ""
	}})
	t.Cleanup(front.Close)
	authority, _ := c.Certificate()
	r := w.relay(&rest.Config{Host: front.URL, BearerToken: cluster.Agent}, append(impatient(), reviews.WithClientCA(authority)))
	certified := r.config("") // the relay asks for it, and impersonates it
	certified.CertData, certified.KeyData = c.ClientCertificate("unnamed", time.Now().Add(time.Hour))
	var clients []http.RoundTripper
	for _, config := range []*rest.Config{r.config(cluster.Nobody), certified} {
		config.NextProtos = []string{"http/1.1"} // in which such a Connection can be sent
		as, err := rest.TransportFor(config)
		require.NoError(t, err)
		clients = append(clients, as)
	}
	for _, target := range []string{
		"/openapi/../api/v1/secrets", "/openapi/%2e%2e/api/v1/secrets", "/apis/../api/v1/secrets", "/apis/../metrics", "/version/../api/v1/secrets",
		"/openapi//../api/v1/secrets", "//api/v1/secrets", "/openapi/v3/../../api/v1/namespaces/default/secrets/theirs",
	} {
		for _, header := range []http.Header{{}, {"Connection": {"Impersonate-User"}, "Impersonate-User": {"nobody-else"}}} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.address, nil)
			require.NoError(t, err)
			if request.URL.Opaque = target; strings.HasPrefix(target, "//") {
				request.URL.Opaque, request.URL.Path = "", target
			}
			request.Header = header.Clone()
			for _, as := range clients {
				response, err := as.RoundTrip(request)
				require.NoError(t, err)
				body, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				require.NoError(t, response.Body.Close())
				require.GreaterOrEqual(t, response.StatusCode, 400, "%s: %.200s", target, body)
				require.NotContains(t, string(body), base64.StdEncoding.EncodeToString([]byte("very-secret")), target)
			}
		}
	}
}

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReferences: the ConfigMaps and Secrets that the pods mention are listed and logged, with the
// pods, and without a value. No other object is asked for.
func TestReferences(t *testing.T) {
	const value = "a value that is planted"
	o, err := parse([]string{"--node", "node-1", "--references"}, io.Discard)
	require.NoError(t, err)
	s, err := startStory(&o, io.Discard)
	require.NoError(t, err)
	defer s.stop()
	_, err = s.pods.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "job"},
		Spec: corev1.PodSpec{
			NodeName: "node-1", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "private"}},
			Containers: []corev1.Container{{Name: "main", Image: "job"}},
		},
	})
	require.NoError(t, err)
	for _, name := range []string{"private", "of-another-node"} {
		s.secret(name, value)
	}
	var mu sync.Mutex
	var log, asked bytes.Buffer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/secrets") {
			mu.Lock()
			asked.WriteString(r.URL.RawQuery + "\n")
			mu.Unlock()
		}
		if strings.Contains(r.URL.RawQuery, "private") {
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"secrets \"private\" is forbidden"}`, http.StatusForbidden)
			return
		}
		s.api.ServeHTTP(w, r)
	}))
	defer server.Close()
	o.config.Host = server.URL
	a, err := newAgent(o, funcr.New(func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		log.WriteString(line + "\n")
	}, funcr.Options{}), io.Discard)
	require.NoError(t, err)
	defer start(t, a)()

	page := func() string {
		w := httptest.NewRecorder()
		a.endpoints.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/references", nil))
		return w.Body.String()
	}
	logged := func() string {
		mu.Lock()
		defer mu.Unlock()
		return log.String()
	}
	<-a.pods.Synced()
	web := "default/web-5d9c7b6f8-x2x4k"
	lines := strings.Split(page(), "\n")
	require.Equal(t, "ConfigMap default/settings, mentioned by ["+web+"]: is there", lines[0])
	require.Regexp(t, `^Secret default/private, mentioned by \[default/job\]: .*forbidden`, lines[1])
	require.Regexp(t, `^Secret default/tls, mentioned by \[`+web+`\]: .*not_found`, lines[2])

	s.secret("tls", value)
	eventually(t, func() bool { return strings.Contains(page(), "Secret default/tls, mentioned by ["+web+"]: is there\n") })
	eventually(t, func() bool {
		return strings.Contains(logged(), `"kind"="Secret" "name"="default/tls" "is"="there" "pods"=["`+web+`"]`)
	})
	s.remove() // all pods
	eventually(t, func() bool { return page() == "" })
	eventually(t, func() bool { return strings.Contains(logged(), `"name"="default/tls" "is"="no longer mentioned"`) })

	mu.Lock()
	defer mu.Unlock()
	require.NotContains(t, log.String(), value)
	require.NotContains(t, asked.String(), "of-another-node")
	require.Regexp(t, `^(.*metadata.name%3D(private|tls).*\n)+$`, asked.String(), "each request is for one name")
}

func eventually(t *testing.T, is func() bool) {
	t.Helper()
	require.Eventually(t, is, 30*time.Second, 10*time.Millisecond)
}

// start runs the pods of an agent, and its references if it has any, until end is called.
func start(t *testing.T, a *agent) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	runs := []func(context.Context) error{a.pods.Run}
	if a.references != nil {
		runs = append(runs, a.references.run)
	}
	ended := make(chan error, len(runs))
	for _, run := range runs {
		go func() { ended <- run(ctx) }()
	}
	go func() {
		for range a.pods.Updates() {
		}
	}()
	return func() {
		cancel()
		for range runs {
			require.NoError(t, <-ended)
		}
	}
}

// TestReferencesRights: the role of --references names its objects, and permits no verb but those
// that package refs uses.
func TestReferencesRights(t *testing.T) {
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	decode(t, "deploy/references/rights.yaml", &role, &binding)
	require.Equal(t, "Role "+role.Name, binding.RoleRef.Kind+" "+binding.RoleRef.Name)
	require.Equal(t, role.Namespace, binding.Namespace)
	require.Equal(t, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "node-agent", Namespace: "kube-system"}}, binding.Subjects)
	for _, rule := range role.Rules {
		require.NotEmpty(t, rule.ResourceNames)
		require.Equal(t, []string{"watch", "list"}, rule.Verbs)
	}
}

package main

import (
	"bufio"
	"context"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// TestProgram has one pod that mentions a Secret and a ConfigMap, on a server with others.
func TestProgram(t *testing.T) {
	klog.SetLogger(logr.Discard())
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	builtin.Serve(server)
	listener := httptest.NewServer(server)
	t.Cleanup(func() { server.Close(); listener.Close() })
	config := &rest.Config{Host: listener.URL}
	core := kubernetes.NewForConfigOrDie(config).CoreV1()
	for _, name := range []string{"db", "of-another-node"} {
		_, err := core.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
		Name: "main", Image: "web", EnvFrom: []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}},
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		},
	}}}}
	_, err = core.Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, config, "node-1", write)
		_ = write.Close()
	}()
	lines := bufio.NewScanner(read)
	next := func(want string) {
		t.Helper()
		require.True(t, lines.Scan())
		require.Equal(t, want, lines.Text())
	}
	next("Secret default/db is there: web")
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}
	_, err = core.ConfigMaps("default").Create(t.Context(), settings, metav1.CreateOptions{})
	require.NoError(t, err)
	next("ConfigMap default/settings is there: web")
	settings.Data = map[string]string{"a": "b"}
	_, err = core.ConfigMaps("default").Update(t.Context(), settings, metav1.UpdateOptions{})
	require.NoError(t, err)
	next("ConfigMap default/settings is changed: web")
	require.NoError(t, core.Secrets("default").Delete(t.Context(), "db", metav1.DeleteOptions{}))
	next("Secret default/db is deleted: web")
	cancel()
	require.NoError(t, <-ended)
	require.False(t, lines.Scan())
}

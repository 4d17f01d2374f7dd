package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestCommandsThatPeopleTry: help and version print to stdout, and are no mistake.
func TestCommandsThatPeopleTry(t *testing.T) {
	for args, says := range map[string]string{
		"help": "tributary serve [flags]", "-h": "tributary serve [flags]", "--help": "tributary version",
		"help serve": "-encryption-provider-config", "version": "etcd v3.", "--version": "tributary ",
	} {
		var stdout, stderr strings.Builder
		require.Equal(t, exitOK, run(t.Context(), strings.Fields(args), &stdout, &stderr), args)
		require.Contains(t, stdout.String(), says, args)
		require.Empty(t, stderr.String(), args)
	}
}

// TestMetrics: they are where Prometheus looks for them.
func TestMetrics(t *testing.T) {
	p := launch(t, "--data", filepath.Join(t.TempDir(), "data"), "--resource", "pods")
	client, err := rest.HTTPClientFor(p.config)
	require.NoError(t, err)
	response, err := client.Get(p.url + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, 200, response.StatusCode)
	require.Contains(t, string(text), `tributary_apiserver_ready{group="",resource="pods",server="etcd"} 1`)
	require.Contains(t, string(text), "process_resident_memory_bytes")

	foreign, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/metrics", nil)
	require.NoError(t, err)
	foreign.Host = "attacker.example"
	refused, err := client.Do(foreign)
	require.NoError(t, err)
	defer refused.Body.Close()
	require.Equal(t, http.StatusForbidden, refused.StatusCode)
}

// save writes a snapshot of a program's etcd to a file.
func (p *program) save() (path string, content []byte) {
	p.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.etcd}, Logger: zap.NewNop()})
	require.NoError(p.t, err)
	defer client.Close()
	snapshot, err := client.Snapshot(p.t.Context())
	require.NoError(p.t, err)
	defer snapshot.Close()
	content, err = io.ReadAll(snapshot)
	require.NoError(p.t, err)
	path = filepath.Join(p.t.TempDir(), "backup.db")
	require.NoError(p.t, os.WriteFile(path, content, 0o600))
	return path, content
}

// TestDamagedBackupByForce: a file without its right hash is refused, and names the flag that
// serves it. With the flag it is served, and the damage is told. An empty file is said to be empty.
func TestDamagedBackupByForce(t *testing.T) {
	origin := launch(t, "--data", filepath.Join(t.TempDir(), "data"), "--resource", "pods")
	_, err := origin.client().CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{})
	require.NoError(t, err)
	path, content := origin.save()
	content[len(content)-1]++
	require.NoError(t, os.WriteFile(path, content, 0o600))
	var stderr strings.Builder
	require.Equal(t, exitFailed, run(t.Context(), []string{"serve", "--backup", path}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "SHA-256")
	require.Contains(t, stderr.String(), "--force serves what can be read")

	p := launch(t, "--backup", path, "--force", "--resource", "pods")
	list, err := p.client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Contains(t, p.stderr.String(), "no write is known to be missing")

	require.NoError(t, os.WriteFile(path, nil, 0o600))
	stderr.Reset()
	require.Equal(t, exitFailed, run(t.Context(), []string{"serve", "--backup", path}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), path+": it is empty")
}

// TestEncryptedAtRest: Secrets that are encrypted as kube-apiserver does it are served with its
// configuration. Without, they are an error by name, and no empty list.
func TestEncryptedAtRest(t *testing.T) {
	config := filepath.Join(t.TempDir(), "encryption.yaml")
	require.NoError(t, os.WriteFile(config, []byte(`
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aescbc:
      keys:
      - {name: key-2026, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}
  - identity: {}
`), 0o600))
	origin := launch(t, "--data", filepath.Join(t.TempDir(), "data"), "--resource", "secrets,pods", "--encryption-provider-config", config)
	created, err := origin.client().CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token"}, Data: map[string][]byte{"token": []byte("s3cret-and-plain")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	path, content := origin.save()
	require.NotContains(t, string(content), "s3cret-and-plain")
	require.Contains(t, string(content), "k8s:enc:aescbc:v1:key-2026:")

	with := launch(t, "--backup", path, "--resource", "secrets", "--encryption-provider-config", config)
	got, err := with.client().CoreV1().Secrets("default").Get(t.Context(), "token", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, created.Data, got.Data)

	without := launch(t, "--backup", path, "--resource", "secrets,pods")
	_, err = without.client().CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, `default/token`)
	require.ErrorContains(t, err, `encrypted at rest (provider "aescbc", key "key-2026")`)
	_, err = without.client().CoreV1().Secrets("default").Get(t.Context(), "token", metav1.GetOptions{})
	require.ErrorContains(t, err, "encrypted at rest")
	_, err = without.client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
}

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
}

// TestBuiltins: no name and no folder is there twice.
func TestBuiltins(t *testing.T) {
	seen := map[string]string{}
	for _, r := range builtins() {
		for _, key := range []string{r.name(), string(r.prefix("/registry"))} {
			require.Empty(t, seen[key], key)
			seen[key] = r.name()
		}
	}
	require.Equal(t, "ingresses.networking.k8s.io", seen["/registry/ingress/"])
	_, found := findBuiltin("deployments")
	require.True(t, found)
	_, found = findBuiltin("deployments.apps")
	require.True(t, found)
	_, found = findBuiltin("deployments.example.com")
	require.False(t, found)
}

// TestFlagsSayWhatToDo: a mistake on the command line ends the program before anything is begun.
func TestFlagsSayWhatToDo(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, test := range []struct {
		args string
		code int
		says string
	}{
		{"", exitUsage, "tributary serve [flags]"},
		{"server", exitUsage, `there is no command "server"`},
		{"serve --force", exitUsage, "give it with --backup"},
		{"serve --data . --encryption-provider-config missing.yaml", exitFailed, "--encryption-provider-config missing.yaml: "},
		{"serve -h", exitOK, "-resource"},
		{"serve --no-such-flag", exitUsage, "no-such-flag"},
		{"serve pods", exitUsage, `unexpected argument "pods"`},
		{"serve --registry", exitUsage, "--registry needs --etcd"},
		{"serve --etcd-user root", exitUsage, "--etcd-user needs --etcd"},
		{"serve --etcd http://a --etcd-user root", exitUsage, "set ETCD_PASSWORD"},
		{"serve --etcd http://a --data b", exitUsage, "leave it out, or --etcd"},
		{"serve --etcd http://a --etcd-certfile b", exitUsage, "give both"},
		{"serve --tls-cert-file a", exitUsage, "give both"},
		{"serve --tls-cert-file a --tls-private-key-file b", exitFailed, "TLS for --listen: open a"},
		{"serve --listen 8080", exitUsage, "give host:port"},
		{"serve --insecure --listen 0.0.0.0:0", exitUsage, "leave out --insecure"},
		{"serve --insecure --listen :0", exitUsage, "leave out --insecure"},
		{"serve --insecure --listen [::]:0 --tls-cert-file a --tls-private-key-file b", exitUsage, "leave out --insecure"},
		{"serve --insecure --listen 10.0.0.1:0", exitUsage, "leave out --insecure"},
		{"serve --insecure --access a", exitUsage, "leave out one of them"},
		{"serve --data . --host http://a", exitFailed, "--host: apiserver: AllowHosts"},
		{"serve --data . --allow-origin a", exitFailed, "--allow-origin: apiserver: AllowOrigins"},
		{"serve --etcd http://a,,http://b", exitUsage, "an empty value"},
		{"serve --backup a --etcd http://b", exitUsage, "leave out --etcd and --data"},
		{"serve --etcd http://127.0.0.1:1", exitFailed, "etcd at http://127.0.0.1:1: read /"},
		{"serve --data . --resource nothing", exitFailed, "name the plural and the group"},
		{"serve --data . --resource pods --status nowhere", exitFailed, "--status: listen tcp"},
		{"relay -h", exitOK, "-field-selector"},
		{"relay pods", exitUsage, `unexpected argument "pods"`},
		{"relay --field-selector a=b", exitUsage, "give that first"},
		{"relay --resource pods --field-selector a", exitUsage, "invalid selector"},
		{"relay --resource pods --label-selector !", exitUsage, "label-selector"},
		{"relay --insecure --listen 0.0.0.0:0", exitUsage, "leave out --insecure"},
		{"relay --insecure --client-ca-file a", exitUsage, "leave it out"},
		{"relay --kubeconfig missing", exitFailed, "--kubeconfig missing: "},
		{"relay", exitFailed, "give --kubeconfig"},
		{"serve --backup missing.db", exitFailed, "missing.db"},
		{"serve --etcd https://a --etcd-cafile missing.pem", exitFailed, "missing.pem"},
	} {
		var stderr strings.Builder
		code := run(t.Context(), strings.Fields(test.args), io.Discard, &stderr)
		require.Equal(t, test.code, code, "%s: %s", test.args, &stderr)
		require.Contains(t, stderr.String(), test.says, test.args)
	}
}

// TestDefinitionsThatCannotBeServed: each mistake in a file is named with its place.
func TestDefinitionsThatCannotBeServed(t *testing.T) {
	whole, err := os.ReadFile("testdata/crontabs.yaml")
	require.NoError(t, err)
	resources, err := fromFile("testdata/crontabs.yaml")
	require.NoError(t, err)
	require.Len(t, resources, 1)
	require.Equal(t, "crontabs.stable.example.com", resources[0].name())
	require.EqualValues(t, "/registry/stable.example.com/crontabs/", resources[0].prefix("/registry"))
	for _, test := range []struct{ old, new, says string }{
		{"served: true", "served: false", "no version is served"},
		{"storage: true", "storage: false", "exactly one version marked as storage version"},
		{".spec.schedule\n", "\".spec[\"\n", "selectableFields[0].jsonPath"},
		{"kind: CustomResourceDefinition", "kind: Deployment", "has no CustomResourceDefinition"},
		{string(whole), "# nothing\n", "has no CustomResourceDefinition"},
		{"spec:", "\tspec", "document 1"},
	} {
		file := filepath.Join(t.TempDir(), "definitions.yaml")
		require.Contains(t, string(whole), test.old)
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(whole), test.old, test.new, 1)), 0o600))
		_, err := fromFile(file)
		require.ErrorContains(t, err, test.says)
		require.ErrorContains(t, err, file)
	}
}

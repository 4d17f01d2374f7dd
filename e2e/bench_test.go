package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tributary-go/tributary/e2e/cluster"
)

// TestBenchOnARealServer: the benchmarks read the pods of a real cluster, over TLS and HTTP/2, and
// print their tables.
func TestBenchOnARealServer(t *testing.T) {
	pods, repeat := 200, 1
	if full {
		pods, repeat = 20_000, 3
	}
	c := cluster.Start(t)
	config := c.Server.Config(cluster.Admin)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"e2e": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"e2e": {Cluster: "e2e", AuthInfo: "admin"}},
		CurrentContext: "e2e",
	}, kubeconfig))
	run := func(program string, more ...string) (tables string) {
		arguments := append([]string{"run", "-C", "../bench", program, "-kubeconfig", kubeconfig, fmt.Sprint("-repeat=", repeat)}, more...)
		bench := exec.CommandContext(t.Context(), "go", arguments...)
		bench.Stderr = os.Stderr
		out, err := bench.Output()
		t.Logf("%s", out)
		require.NoError(t, err)
		return string(out)
	}
	tables := run(".", "-fill", fmt.Sprint("-pods=", pods))
	for _, form := range []string{"protobuf", "JSON"} {
		require.Contains(t, tables, fmt.Sprintf("### first sync of a cluster's pods, %s (%d objects", form, pods))
	}
	tables = run("./interop/caches", fmt.Sprint("-quick=", !full))
	require.Contains(t, tables, fmt.Sprintf("### stripped pods of a cluster (%d objects", pods))
}

package tributary_test

import (
	"bufio"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver"
)

// TestReadmeShowsWholePrograms: each Go block of the README is a file below examples/readme, to the
// letter.
func TestReadmeShowsWholePrograms(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var files []string
	for _, pattern := range []string{"main.go", "*_test.go"} {
		found, err := filepath.Glob(filepath.Join("examples", "readme", "*", pattern))
		require.NoError(t, err)
		files = append(files, found...)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.Len(t, blocks, len(files))
	shown := map[string]bool{}
	for _, block := range blocks {
		shown[block[1]] = true
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, shown[string(source)], "%s is not in the README as it is", file)
	}
}

// TestReadmeProgramsRun builds the commands of the README and runs them against an API server
// with two pods.
func TestReadmeProgramsRun(t *testing.T) {
	api, err := apiserver.NewServer()
	require.NoError(t, err)
	pods := apiserver.Serve(api, watchcache.Pods())
	for _, name := range []string{"web-0", "web-1"} {
		_, err := pods.Create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Status:     corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.0.0." + strings.TrimPrefix(name, "web-")}}},
			Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
		})
		require.NoError(t, err)
	}
	server := httptest.NewServer(api)
	defer server.Close()
	defer api.Close()
	folder := t.TempDir()
	manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: etcd}\nspec: {containers: [{name: main, image: etcd}]}\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "etcd.yaml"), []byte(manifest), 0o600))
	environment := append(os.Environ(), "STATE="+t.TempDir(), "ADDRESS=127.0.0.1:0", "NODE_NAME=node-1", "MANIFESTS="+folder, "KUBECONFIG="+kubeconfig(t, server.URL))

	for program, want := range map[string][]string{
		"agent":      {"ADD default/etcd-node-1 from file", "ADD default/web-0 from api", "ADD default/web-1 from api"},
		"controller": {"node-1 has 2 pods at version 3"},
		"whose":      {"10.0.0.0 is default/web-0", "10.0.0.1 is default/web-1"},
	} {
		t.Run(program, func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), program)
			out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./examples/readme/"+program).CombinedOutput()
			require.NoError(t, err, "%s", out)
			command := exec.CommandContext(t.Context(), binary)
			command.Env = environment
			command.Stdin = strings.NewReader("10.0.0.0\n10.0.0.1\n")
			stdout, err := command.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, command.Start())
			var got []string
			for lines := bufio.NewScanner(stdout); len(got) < len(want) && lines.Scan(); {
				// The copy may be seen half full.
				if line := lines.Text(); !strings.HasSuffix(line, "version 2") {
					got = append(got, line)
				}
			}
			_ = command.Process.Signal(os.Interrupt) // it may end with its input
			require.NoError(t, command.Wait())
			require.ElementsMatch(t, want, got)
		})
	}
}

// kubeconfig writes a file that names a server without credentials.
func kubeconfig(t *testing.T, url string) (path string) {
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: url}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local"}
	config.CurrentContext = "local"
	path = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

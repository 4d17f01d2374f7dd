package docs_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// TestReadmeShowsWholePrograms: each Go block of the README is a file below examples/readme, to the
// letter.
func TestReadmeShowsWholePrograms(t *testing.T) {
	atRoot(t)
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
	atRoot(t)
	api, err := apiserver.NewServer()
	require.NoError(t, err)
	sets := apiserver.Serve(api, builtin.Of[*appsv1.ReplicaSet]())
	set, err := sets.Create(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web-1", OwnerReferences: []metav1.OwnerReference{controller("Deployment", "web", "uid-of-web")},
	}})
	require.NoError(t, err)
	pods := apiserver.Serve(api, builtin.Pods())
	for _, name := range []string{"web-0", "web-1"} {
		_, err := pods.Create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{controller("ReplicaSet", set.Name, set.UID)}},
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
	environment := append(os.Environ(), "STATE="+t.TempDir(), "NODE_NAME=node-1", "MANIFESTS="+folder, "KUBECONFIG="+kubeconfig(t, server.URL))

	t.Run("whose", func(t *testing.T) { runWhose(t, environment) })
	for program, want := range map[string][]string{
		"agent":      {"ADD default/etcd-node-1 from file", "ADD default/web-0 from api", "ADD default/web-1 from api"},
		"controller": {"node-1 has 2 pods at version 4"},
	} {
		t.Run(program, func(t *testing.T) {
			command := build(t, program, environment)
			stdout, err := command.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, command.Start())
			var got []string
			for lines := bufio.NewScanner(stdout); len(got) < len(want) && lines.Scan(); {
				// The copy may be seen half full.
				if line := lines.Text(); !strings.HasSuffix(line, "version 3") {
					got = append(got, line)
				}
			}
			require.NoError(t, command.Process.Signal(os.Interrupt))
			require.NoError(t, command.Wait())
			require.ElementsMatch(t, want, got)
		})
	}
}

// runWhose asks for an address, until the owner of its pod is known. The README promises a program
// of fewer than 60 lines.
func runWhose(t *testing.T, environment []string) {
	source, err := os.ReadFile("examples/readme/whose/main.go")
	require.NoError(t, err)
	require.Less(t, strings.Count(string(source), "\n"), 60)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	command := build(t, "whose", append(environment, "ADDRESS="+address))
	require.NoError(t, command.Start())
	get := func(path string) (code int, body string) {
		answer, err := http.Get("http://" + address + path)
		if err != nil {
			return 0, ""
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(text)
	}
	require.Eventually(t, func() bool {
		_, body := get("/whose?ip=10.0.0.1")
		return body == "default/web-1 of Deployment web\n"
	}, time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { code, _ := get("/readyz"); return code == http.StatusOK }, time.Minute, 10*time.Millisecond)
	_, body := get("/metrics")
	require.Contains(t, body, `tributary_sources_pods{source="api",sources="node"} 2`)
	require.NoError(t, command.Process.Signal(os.Interrupt))
	require.NoError(t, command.Wait())
}

// build builds a command of the README.
func build(t *testing.T, program string, environment []string) *exec.Cmd {
	t.Helper()
	binary := filepath.Join(t.TempDir(), program)
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./examples/readme/"+program).CombinedOutput()
	require.NoError(t, err, "%s", out)
	command := exec.CommandContext(t.Context(), binary)
	command.Env = environment
	return command
}

func controller(kind, name string, uid types.UID) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: uid, Controller: &yes}
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

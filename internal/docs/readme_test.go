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
	"unicode/utf8"

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

// TestReadmeIsShort: a reader takes in the README in some minutes, and its program at a glance.
func TestReadmeIsShort(t *testing.T) {
	require.LessOrEqual(t, utf8.RuneCountInString(readme(t)), 8000)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readme(t), -1)
	require.Len(t, blocks, 1)
	require.LessOrEqual(t, strings.Count(blocks[0][1], "\n"), 25)
	program, err := os.ReadFile("examples/readme/agent/main.go")
	require.NoError(t, err)
	require.Equal(t, string(program), blocks[0][1])
	programs, err := filepath.Glob("examples/readme/*/")
	require.NoError(t, err)
	for _, folder := range programs {
		if filepath.Base(folder) != "agent" && filepath.Ext(folder) == "" {
			require.Contains(t, readme(t), "(examples/readme/"+filepath.Base(folder)+")")
		}
	}
}

// TestReadmeLinesCompile: each line that the README has a reader write is in a Go file, to the
// letter. The commands of cmd/tributary are in its doc comment.
func TestReadmeLinesCompile(t *testing.T) {
	_, table, found := strings.Cut(readme(t), "\n## Which part do I need?\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	lines := regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1)
	require.Len(t, lines, 9)
	for _, line := range lines {
		in := ""
		for path := range files(t, ".go") {
			source, err := os.ReadFile(path)
			require.NoError(t, err)
			if strings.Contains(string(source), line[1]) {
				in = path
				break
			}
		}
		require.NotEmpty(t, in, "no Go file has the line %s", line[1])
	}
}

// TestReadmeHasFiguresOfTheBenchmarks: a figure of the README that the page of the benchmarks lost
// is no longer true.
func TestReadmeHasFiguresOfTheBenchmarks(t *testing.T) {
	_, section, found := strings.Cut(readme(t), "\n## Figures\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	measuredIn := read(t, "docs/makers/benchmarks.md")
	figures := regexp.MustCompile(`\b\d+\.\d+\b`)
	measured := figures.FindAllString(measuredIn, -1)
	told := figures.FindAllString(section, -1)
	require.Greater(t, len(told), 15)
	for _, figure := range told {
		require.Contains(t, measured, figure, "docs/makers/benchmarks.md has no such figure")
	}
}

// TestReadmePictures: each picture of the README is there.
func TestReadmePictures(t *testing.T) {
	pictures := regexp.MustCompile(`(?:src|srcset)="([^"]+)"`).FindAllStringSubmatch(readme(t), -1)
	require.Len(t, pictures, 3)
	for _, picture := range pictures {
		require.FileExists(t, picture[1])
	}
}

func readme(t *testing.T) string {
	t.Helper()
	atRoot(t)
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(page)
}

// TestReadmeProgramsRun builds the programs of the README and runs them against an API server
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
	t.Run("agent", func(t *testing.T) {
		command := build(t, "agent", environment)
		stderr, err := command.StderrPipe()
		require.NoError(t, err)
		lines := run(t, command, stderr, 2, "pods from")
		for i, line := range lines {
			lines[i] = line[len("2006/01/02 15:04:05 "):]
		}
		require.ElementsMatch(t, []string{"ADD 1 pods from file", "ADD 2 pods from api"}, lines)
		require.NoError(t, command.Process.Kill())
		require.Error(t, command.Wait())
	})
	t.Run("controller", func(t *testing.T) {
		command := build(t, "controller", environment)
		stdout, err := command.StdoutPipe()
		require.NoError(t, err)
		// The copy may be seen half full before.
		require.Equal(t, []string{"node-1 has 2 pods at version 4"}, run(t, command, stdout, 1, "version 4"))
		require.NoError(t, command.Process.Signal(os.Interrupt))
		require.NoError(t, command.Wait())
	})
}

// run starts a command and returns the first lines of an output that have the text.
func run(t *testing.T, command *exec.Cmd, output io.Reader, lines int, text string) (got []string) {
	t.Helper()
	require.NoError(t, command.Start())
	for scanner := bufio.NewScanner(output); len(got) < lines && scanner.Scan(); {
		if strings.Contains(scanner.Text(), text) {
			got = append(got, scanner.Text())
		}
	}
	return got
}

// runWhose asks for an address, until the owner of its pod is known. The program has fewer than 60
// lines.
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

// build builds a program of the README.
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

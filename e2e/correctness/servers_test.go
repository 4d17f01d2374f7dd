package correctness

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// server is a running server.
type server struct {
	name, url string
	etcd      string // empty: it has none
}

// servers start what is judged. Each ends with its test.
var servers = []struct {
	name  string
	start func(testing.TB) server
}{
	{"memory", startMemory},
	{"serve", startServe},
	{"relay", startRelay},
}

// resources are what is judged of each server: pods, whose deletion is two writes, and another
// kind, whose deletion is one.
var resources = []string{"serviceaccounts", "pods"}

// buildFolder is for what tests build; TestMain removes it.
var buildFolder = filepath.Join(os.TempDir(), fmt.Sprint("tributary-correctness-", os.Getpid()))

var (
	tributary = sync.OnceValues(func() (string, error) { return build("../../cmd/tributary", ".", "tributary") })
	inMemory  = sync.OnceValues(func() (string, error) { return build("..", "./inmemory", "inmemory") })
)

func TestMain(m *testing.M) {
	// The servers are built by the go command that runs there: go test has put this module's own
	// before it.
	bin := filepath.Join(os.Getenv("GOROOT"), "bin") + string(os.PathListSeparator)
	_ = os.Setenv("PATH", strings.TrimPrefix(os.Getenv("PATH"), bin))
	_ = os.Unsetenv("GOROOT")
	_ = os.Unsetenv("GOTOOLCHAIN")
	code := m.Run()
	_ = os.RemoveAll(buildFolder)
	os.Exit(code)
}

func build(module, path, name string) (binary string, err error) {
	binary = filepath.Join(buildFolder, name)
	if out, err := exec.Command("go", "build", "-C", module, "-o", binary, path).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	return binary, nil
}

// start runs a program that ends with the test, and returns the first line that it prints.
func start(t testing.TB, built func() (string, error), arguments ...string) (said string) {
	t.Helper()
	binary, err := built()
	require.NoError(t, err)
	var problems strings.Builder
	process := exec.Command(binary, arguments...)
	process.Stderr = &problems
	_, err = process.StdinPipe()
	require.NoError(t, err)
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill() // it may have ended
		if _ = process.Wait(); t.Failed() {
			t.Logf("stderr of %s: %s", filepath.Base(binary), &problems)
		}
	})
	defer time.AfterFunc(2*time.Minute, func() { _ = process.Process.Kill() }).Stop()
	said, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s has not begun", filepath.Base(binary))
	return said
}

// address is where a program said that it listens.
func address(t testing.TB, said string) string {
	t.Helper()
	found := regexp.MustCompile(` on (http://[0-9.:]+)`).FindStringSubmatch(said)
	require.NotNil(t, found, said)
	return found[1]
}

func startMemory(t testing.TB) server {
	return server{name: "memory", url: address(t, start(t, inMemory))}
}

func startServe(t testing.TB) server {
	said := start(t, tributary, "serve", "--insecure", "--listen", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"))
	etcd := regexp.MustCompile(`unix://[^,]+`).FindString(said)
	require.NotEmpty(t, etcd, said)
	return server{name: "serve", url: address(t, said), etcd: etcd}
}

// startRelay starts a relay of a server on an etcd.
func startRelay(t testing.TB) server {
	upstream := startServe(t)
	config := api.NewConfig()
	config.Clusters["upstream"] = &api.Cluster{Server: upstream.url}
	config.Contexts["upstream"] = &api.Context{Cluster: "upstream"}
	config.CurrentContext = "upstream"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	said := start(t, tributary, "relay", "--insecure", "--listen", "127.0.0.1:0", "--kubeconfig", file)
	return server{name: "relay", url: address(t, said), etcd: upstream.etcd}
}

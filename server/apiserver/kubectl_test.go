package apiserver_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// kubectl prepares a command against the rig; the test is skipped where there is no kubectl.
func (r *rig) kubectl(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not in PATH")
	}
	home := t.TempDir()
	command := exec.CommandContext(t.Context(), path, append([]string{"-s", r.url}, args...)...)
	command.Env = []string{"HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "none"), "PATH=" + os.Getenv("PATH")}
	return command
}

func (r *rig) runKubectl(t *testing.T, args ...string) string {
	t.Helper()
	var problems strings.Builder
	command := r.kubectl(t, args...)
	command.Stderr = &problems
	out, err := command.Output()
	require.NoError(t, err, problems.String())
	return string(out)
}

// words are the first columns of each line.
func words(out string, columns int) (lines []string) {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		lines = append(lines, strings.Join(fields[:min(columns, len(fields))], " "))
	}
	return lines
}

func TestKubectlGet(t *testing.T) {
	r := newRig(t)
	r.create(t, pod("a", onNode("n1"), labelled("app", "web")), pod("b", onNode("n2"), inNamespace("other")))
	get := func(args ...string) []string {
		return words(r.runKubectl(t, append([]string{"get", "pods"}, args...)...), 5)
	}
	header := "NAMESPACE NAME READY STATUS RESTARTS"
	a, b := "ns a 0/1 Pending 0", "other b 0/1 Pending 0"
	require.Equal(t, []string{header, a, b}, get("-A"))
	require.Equal(t, []string{header, a, b}, get("-A", "--chunk-size=1"))
	require.Equal(t, []string{header, b}, get("-A", "--field-selector", "spec.nodeName=n2"))
	require.Equal(t, []string{header, a}, get("-A", "-l", "app=web"))
	require.Equal(t, "NAME READY STATUS RESTARTS AGE", get("-n", "other")[0])
	require.Equal(t, []string{"NAME READY", "a 0/1"}, words(r.runKubectl(t, "get", "all", "-n", "ns"), 2))

	yaml := r.runKubectl(t, "get", "pod", "a", "-n", "ns", "-o", "yaml")
	require.True(t, strings.HasPrefix(yaml, "apiVersion: v1\nkind: Pod\n"), yaml)
	require.Contains(t, yaml, "nodeName: n1")
	require.Contains(t, r.runKubectl(t, "api-resources"), "po ")
}

func TestKubectlWatch(t *testing.T) {
	r := newRig(t)
	r.create(t, pod("a", onNode("n1")))
	command := r.kubectl(t, "get", "pods", "-A", "-w")
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	lines := bufio.NewScanner(out)
	next := func() string {
		require.True(t, lines.Scan())
		return words(lines.Text(), 4)[0]
	}
	require.Equal(t, "NAMESPACE NAME READY STATUS", next())
	require.Equal(t, "ns a 0/1 Pending", next())
	r.create(t, pod("b"))
	require.Equal(t, "ns b 0/1 Pending", next())
	r.Close()
	require.False(t, lines.Scan(), "the server's end is the watch's")
	_ = command.Wait() // how kubectl reports the end is its own business
}

func TestKubectlDelete(t *testing.T) {
	r := newRig(t)
	r.create(t, pod("a", onNode("n1")), pod("b"))
	r.runKubectl(t, "delete", "pod", "b", "-n", "ns")
	_, err := r.pods.Get("ns", "b")
	require.True(t, apierrors.IsNotFound(err), "%v", err)

	r.runKubectl(t, "delete", "pod", "a", "-n", "ns", "--wait=false")
	require.Equal(t, "a 0/1 Terminating", words(r.runKubectl(t, "get", "pods", "-n", "ns", "--no-headers"), 3)[0])
	r.runKubectl(t, "delete", "pod", "a", "-n", "ns", "--force", "--grace-period=0")
	_, err = r.pods.Get("ns", "a")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

func TestKubectlWrites(t *testing.T) {
	r := newRig(t)
	manifest := func(value string) {
		command := r.kubectl(t, "apply", "-f", "-")
		command.Stdin = strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap",` +
			`"metadata":{"name":"m","namespace":"ns"},"data":{"k":"` + value + `"}}`)
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
		m, err := r.configMaps.Get("ns", "m")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"k": value}, m.Data)
	}
	manifest("first")
	manifest("second")
	misspelt := r.kubectl(t, "apply", "-f", "-")
	misspelt.Stdin = strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"ns"},"dada":{}}`)
	out, err := misspelt.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), `unknown field "dada"`, "the server validates")
	r.runKubectl(t, "label", "configmap", "m", "-n", "ns", "app=web")
	r.runKubectl(t, "patch", "configmap", "m", "-n", "ns", "--type=json", `-p=[{"op":"add","path":"/data/j","value":"w"}]`)
	m, err := r.configMaps.Get("ns", "m")
	require.NoError(t, err)
	require.Equal(t, "web", m.Labels["app"])
	require.Equal(t, "w", m.Data["j"])
}

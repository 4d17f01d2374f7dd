package e2e_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/e2e/cluster"
)

const (
	podsLabel     = "tributary.example/pods"
	leaseName     = "pods-per-node"
	leaseDuration = 6 * time.Second
)

// TestControllerReplicas runs examples/controller twice, with the rights that its doc names. The
// leader is killed, and the other one takes over when the lease has run out; that one is asked to
// end, and the next takes over at once. The labels follow a writer all along.
func TestControllerReplicas(t *testing.T) {
	onServers(t, controllerReplicas)
}

func controllerReplicas(t *testing.T, on server) {
	t.Parallel() // the two servers beside each other
	c := on.start(t)
	w := newWorld(t, c)
	w.permit("counts-pods", cluster.AgentUser,
		rbacv1.PolicyRule{Verbs: []string{"patch"}, APIGroups: []string{""}, Resources: []string{"nodes"}},
		rbacv1.PolicyRule{Verbs: []string{"get", "create", "update"}, APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}})
	for i := range 5 {
		_, err := w.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	pods := 0
	write := func() { // ten pods more, and the oldest five gone
		t.Helper()
		for range 10 {
			_, err := w.client.CoreV1().Pods("default").Create(t.Context(), newPod(podName(pods), nodeName(pods%3)), metav1.CreateOptions{})
			require.NoError(t, err)
			pods++
		}
		var now int64
		for i := pods - 10; i < pods-5; i++ {
			err := w.client.CoreV1().Pods("default").Delete(t.Context(), podName(i), metav1.DeleteOptions{GracePeriodSeconds: &now})
			require.NoError(t, err)
		}
	}
	start := controllers(t, c)

	replicas := map[string]*replica{"a": start("a"), "b": start("b")}
	write()
	w.awaitLabels()
	leader := w.leaseHolder()
	first := replicas[leader]
	delete(replicas, leader)
	var second *replica
	for _, second = range replicas {
	}
	require.Empty(t, second.stdout.String(), "only one of them writes")
	require.Eventually(t, func() bool { return second.ready() }, time.Minute, 50*time.Millisecond, "it is ready to take over")

	first.signal(t, syscall.SIGKILL)
	killed := time.Now()
	write()
	require.Eventually(t, func() bool { return w.leaseHolder() == second.name }, time.Minute, 20*time.Millisecond)
	t.Logf("killed: the other one leads after %s, with a lease of %s", time.Since(killed).Round(10*time.Millisecond), leaseDuration)
	w.awaitLabels()
	t.Logf("killed: the labels are right after %s", time.Since(killed).Round(10*time.Millisecond))
	require.NotEmpty(t, second.stdout.String())

	third := start("c")
	require.Eventually(t, func() bool { return third.ready() }, time.Minute, 50*time.Millisecond)
	second.signal(t, syscall.SIGTERM)
	stopped := time.Now()
	require.NoError(t, <-second.ended, "%s", second.stderr.String())
	t.Logf("asked to end: ended after %s", time.Since(stopped).Round(10*time.Millisecond))
	write()
	require.Eventually(t, func() bool { return w.leaseHolder() == third.name }, time.Minute, 20*time.Millisecond)
	t.Logf("asked to end: the next one leads after %s", time.Since(stopped).Round(10*time.Millisecond))
	w.awaitLabels()

	node, err := w.client.CoreV1().Nodes().Get(t.Context(), nodeName(0), metav1.GetOptions{})
	require.NoError(t, err)
	var owners []string
	for _, entry := range node.ManagedFields {
		if bytes.Contains(entry.FieldsV1.Raw, []byte(podsLabel)) {
			owners = append(owners, entry.Manager+" "+string(entry.Operation))
		}
	}
	require.Equal(t, []string{"pods-per-node Apply"}, owners)
}

// replica is one running controller.
type replica struct {
	name           string
	process        *os.Process
	stdout, stderr *output
	ended          chan error // gets the result of Wait, once
}

// controllers builds the example, and returns what starts a replica of it.
func controllers(t *testing.T, c *cluster.Cluster) func(name string) *replica {
	folder := t.TempDir()
	binary := filepath.Join(folder, "controller")
	built, err := exec.Command("go", "build", "-C", "..", "-o", binary, "./examples/controller").CombinedOutput()
	require.NoError(t, err, "%s", built)
	kubeconfig := filepath.Join(folder, "kubeconfig")
	config := c.Server.Config(cluster.Agent)
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: agent, user: {token: %s}}]
contexts: [{name: e2e, context: {cluster: e2e, user: agent}}]
current-context: e2e
`, config.Host, base64.StdEncoding.EncodeToString(config.CAData), config.BearerToken), 0o600))
	return func(name string) *replica {
		r := &replica{name: name, stdout: &output{}, stderr: &output{}, ended: make(chan error, 1)}
		command := exec.Command(binary, "--kubeconfig", kubeconfig, "--identity", name, "--lease", leaseName,
			"--lease-duration", leaseDuration.String(), "--renew-deadline", "4s", "--retry-period", "1s",
			"--for", "5m") // it ends by itself, should the test be killed
		command.Stdout, command.Stderr = r.stdout, r.stderr
		require.NoError(t, command.Start())
		r.process = command.Process
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			r.ended <- command.Wait()
		}()
		t.Cleanup(func() {
			_ = r.process.Kill()
			<-waited
			if t.Failed() {
				t.Logf("replica %s:\n%s%s", name, r.stdout, r.stderr)
			}
		})
		return r
	}
}

func (r *replica) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, r.process.Signal(s))
}

var readyURL = regexp.MustCompile(`http://[^"]+/readyz`)

// ready reports whether the replica says so.
func (r *replica) ready() bool {
	url := readyURL.FindString(r.stderr.String())
	if url == "" {
		return false
	}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// output may be read while it is written.
type output struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (w *world) leaseHolder() string {
	lease, err := w.client.CoordinationV1().Leases("default").Get(w.t.Context(), leaseName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// awaitLabels waits until each node's label is the number of its pods, as the server lists them
// now.
func (w *world) awaitLabels() {
	w.t.Helper()
	var want, got map[string]string
	right := func() bool {
		want, got = map[string]string{}, map[string]string{}
		nodes, err := w.client.CoreV1().Nodes().List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		counts := map[string]int{}
		pods, err := w.client.CoreV1().Pods("").List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		for i := range pods.Items {
			counts[pods.Items[i].Spec.NodeName]++
		}
		for i := range nodes.Items {
			want[nodes.Items[i].Name] = strconv.Itoa(counts[nodes.Items[i].Name])
			got[nodes.Items[i].Name] = nodes.Items[i].Labels[podsLabel]
		}
		return maps.Equal(want, got)
	}
	if !assertEventually(right, time.Minute) {
		require.Equal(w.t, want, got)
	}
}

func assertEventually(condition func() bool, limit time.Duration) bool {
	deadline := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
	return true
}

package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tributary-go/tributary/e2e/cluster"
)

// TestNodeAgentBehindRelay: examples/node-agent as it is, with the rights of its own manifest, goes
// on behind a relay of its node's pods, which may read no other kind, while the relay and the API
// server are killed. Each line of a log comes out once, with the Deployment of its pod.
func TestNodeAgentBehindRelay(t *testing.T) {
	t.Parallel()
	audit := cluster.NewAudit(t)
	c := cluster.Start(t, audit.Flags()...)
	w := newWorld(t, c) // Agent may list and watch
	const node = "node-1"
	_, err := w.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.permit("pods-of-nodes", "system:serviceaccount:default:relay", rbacv1.PolicyRule{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods"}})
	w.permit("reviews", "system:serviceaccount:default:relay",
		rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}},
		rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}})
	w.permit("agent", "system:serviceaccount:default:node-agent", rulesOfAgent(t)...)
	hour := time.Now().Add(time.Hour)
	binary, err := tributary()
	require.NoError(t, err)
	relay := c.StartRelay(binary, c.Server.Config(c.AccountToken(w.account(t, "relay"), hour)),
		"--resource=pods", "--field-selector=spec.nodeName="+node, "--data="+t.TempDir())
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	cluster.WriteKubeconfig(t, kubeconfig, relay.Config(c.AccountToken(w.account(t, "node-agent"), hour)))
	agent := runNodeAgent(t, folder, "--node="+node, "--kubeconfig="+kubeconfig)

	written := 0
	write := func(pod *corev1.Pod) {
		t.Helper()
		written++
		text := fmt.Sprintf("line %d", written)
		agent.write(t, pod, text)
		require.Eventually(t, func() bool { return len(agent.with(text)) > 0 }, 30*time.Second, 20*time.Millisecond, "%q is not out: %s", text, agent.rest())
		require.Equal(t, "Deployment/web", agent.with(text)[0].Workload, "%q", text)
		require.Equal(t, pod.Name, agent.with(text)[0].Pod)
	}
	first := w.podOfDeployment(t, "web-1", node)
	_ = w.podOfDeployment(t, "elsewhere", "node-2")
	write(first)
	relay.Kill()
	agent.write(t, first, "without the relay")
	relay.Restart()
	write(first)
	second := w.podOfDeployment(t, "web-2", node)
	write(second)
	c.Server.Kill()
	write(second)
	c.Server.Restart()
	write(w.podOfDeployment(t, "web-3", node))
	relay.Stop()
	relay.Restart()
	write(w.podOfDeployment(t, "web-4", node))
	require.NoError(t, w.client.CoreV1().Pods("default").Delete(t.Context(), first.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	agent.write(t, first, "goodbye")
	require.Eventually(t, func() bool { return len(agent.with("goodbye")) > 0 }, 30*time.Second, 20*time.Millisecond)
	require.Len(t, agent.with("without the relay"), 1)
	for n := range written {
		require.Len(t, agent.with(fmt.Sprintf("line %d", 1+n)), 1, "a line comes out once")
	}
	require.Empty(t, agent.with("elsewhere"))
	for _, r := range audit.Requests() {
		if r.Resource == "pods" && r.User == "system:serviceaccount:default:relay" {
			require.Contains(t, r.Query.Get("fieldSelector"), "spec.nodeName="+node, "the relay reads more than its flags ask for: %+v", r)
		}
	}
	require.Empty(t, audit.Collected("system:serviceaccount:default:node-agent", "pods"), "what the agent reads comes out of the copy")
}

func rulesOfAgent(t testing.TB) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile("../examples/node-agent/deploy/rights.yaml")
	require.NoError(t, err)
	var role rbacv1.ClusterRole
	require.NoError(t, yaml.UnmarshalStrict([]byte(strings.Split(string(text), "\n---\n")[1]), &role))
	require.NotEmpty(t, role.Rules)
	return role.Rules
}

// podOfDeployment creates a pod of a ReplicaSet of the Deployment web.
func (w *world) podOfDeployment(t testing.TB, name, node string) *corev1.Pod {
	t.Helper()
	labels := map[string]string{"app": name}
	pod := smallPod(name, node)
	set, err := w.client.AppsV1().ReplicaSets("default").Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "web", UID: "web"}, appsv1.SchemeGroupVersion.WithKind("Deployment")),
		}},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	pod, err = w.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	return pod
}

// nodeAgent is a running examples/node-agent.
type nodeAgent struct {
	logs string

	mu       sync.Mutex // guards the next fields
	lines    []agentLine
	problems []string
}

type agentLine struct{ Pod, Workload, Log string }

func runNodeAgent(t testing.TB, folder string, flags ...string) *nodeAgent {
	t.Helper()
	binary := filepath.Join(folder, "node-agent")
	_, err := cluster.Go("..", "build", "-o", binary, "./examples/node-agent")
	require.NoError(t, err)
	a := &nodeAgent{logs: filepath.Join(folder, "logs")}
	state := filepath.Join(folder, "state")
	for _, f := range []string{a.logs, state} {
		require.NoError(t, os.Mkdir(f, 0o700))
	}
	command := exec.Command(binary, append(flags, "--logs="+a.logs, "--state="+state)...)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	problems, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var line agentLine
			if json.Unmarshal(lines.Bytes(), &line) == nil {
				a.mu.Lock()
				a.lines = append(a.lines, line)
				a.mu.Unlock()
			}
		}
	})
	reading.Go(func() {
		for lines := bufio.NewScanner(problems); lines.Scan(); {
			a.mu.Lock()
			a.problems = append(a.problems, lines.Text())
			a.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		reading.Wait()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("node-agent: %s", a.rest())
		}
	})
	return a
}

// write appends a line to the log of a pod, as a container runtime does.
func (a *nodeAgent) write(t testing.TB, pod *corev1.Pod, text string) {
	t.Helper()
	folder := filepath.Join(a.logs, fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID), "main")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	file, err := os.OpenFile(filepath.Join(folder, "0.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer file.Close()
	_, err = fmt.Fprintf(file, "%s stdout F %s\n", time.Now().UTC().Format(time.RFC3339Nano), text)
	require.NoError(t, err)
}

// with are the lines with a text.
func (a *nodeAgent) with(text string) (found []agentLine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, line := range a.lines {
		if line.Log == text {
			found = append(found, line)
		}
	}
	return found
}

// rest is what it says of itself.
func (a *nodeAgent) rest() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.problems[max(0, len(a.problems)-15):], "\n")
}
